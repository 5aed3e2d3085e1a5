# run flow as its callers see it.
$(eval $(call script_test,system/flow,tests/system/flow.py,tests/system/harness.py $(MILLRACE)))
$(eval $(call script_test,system/flow_page,tests/system/flow_page.py,tests/system/harness.py tools/bench-flow docs/pnm-flows.md \
	models/zoo/flows/bpd.json))
