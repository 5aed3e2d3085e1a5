# The near-memory elements as their callers see them.
$(eval $(call script_test,system/pnm_gemv,tests/system/pnm_gemv.py,tests/system/files.py tests/system/harness.py \
	$(MILLRACE)))
$(eval $(call script_test,system/pnm_trace,tests/system/pnm_trace.py,tests/system/files.py tests/system/harness.py \
	$(MILLRACE)))
$(eval $(call script_test,system/pnm_study,tests/system/pnm_study.py,tests/system/harness.py docs/pnm-study.md \
	$(MILLRACE)))
