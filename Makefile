.PHONY: demo smoke test kube floor faults verify bench-path bench-core bench-cluster bench-recovery bench-web crash-nightly storm mutate matrix pack
demo smoke test kube floor faults verify bench-path bench-core bench-cluster bench-recovery bench-web crash-nightly storm mutate matrix pack:
	@RESET="$(RESET)" ./dev $@ $(ARGS)
