# The study of the near-memory unit, as docs/pnm-study.md shows it, and the RTL beside the model.
.PHONY: bench-pnm-study docs-pnm-study
bench-pnm-study: $(MILLRACE) $(SIM_PNM) $(DRIVER_DIR)/mr_driver_sim.so $(SIM_HOST)
	@BUILD="$(BUILD)" tools/bench-pnm-study
BENCHES += bench-pnm-study

docs-pnm-study: $(MILLRACE)
	@echo "  STUDY docs/pnm-study.md"
	@BUILD="$(BUILD)" tools/bench-pnm-study --update
DOCS += docs-pnm-study
