.PHONY: demo smoke test kube verify bench-path
demo smoke test kube verify bench-path:
	@RESET="$(RESET)" ./dev $@ $(ARGS)
