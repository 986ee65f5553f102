"""Settings: all in base, from the environment; dev, test and prod only override."""
