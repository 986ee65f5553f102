.PHONY: demo smoke test kube faults verify bench-path bench-core bench-cluster mutate
demo smoke test kube faults verify bench-path bench-core bench-cluster mutate:
	@RESET="$(RESET)" ./dev $@ $(ARGS)
