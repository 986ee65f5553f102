.PHONY: demo smoke test kube floor faults verify bench-path bench-core bench-cluster bench-recovery crash-nightly mutate pack
demo smoke test kube floor faults verify bench-path bench-core bench-cluster bench-recovery crash-nightly mutate pack:
	@RESET="$(RESET)" ./dev $@ $(ARGS)
