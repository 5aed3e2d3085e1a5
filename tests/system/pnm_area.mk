# The comparison of multipliers: its page against its record, its library reader, timing and energy.
$(eval $(call script_test,system/pnm_area,tests/system/pnm_area.py,tests/system/harness.py docs/pnm-area.md \
	models/cycle/pnm_area.json $(wildcard tools/silicon/*.py)))
