.PHONY: demo smoke test kube verify bench-path bench-core
demo smoke test kube verify bench-path bench-core:
	@RESET="$(RESET)" ./dev $@ $(ARGS)
