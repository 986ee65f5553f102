.PHONY: demo smoke test kube faults verify bench-path bench-core bench-cluster bench-recovery crash-nightly mutate
demo smoke test kube faults verify bench-path bench-core bench-cluster bench-recovery crash-nightly mutate:
	@RESET="$(RESET)" ./dev $@ $(ARGS)
