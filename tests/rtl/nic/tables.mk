# The tables of the NIC and its KV engines. The directory is built at its full size: 524,288 places.
NIC_TABLE_PKGS := rtl/nic/nic_frame_pkg.sv rtl/nic/nic_pkg.sv rtl/nic/nic_desc_pkg.sv
NIC_TABLES_C := host/nic/tables.c host/core/error.c

# $(1) name, $(2) top, $(3) bench, $(4) more objects, $(5) Verilator flags
define nic_table_test
$(eval $(call rtl_test,rtl/nic/$(1),$(2),$(NIC_TABLE_PKGS) rtl/nic/$(2).sv,tests/rtl/nic/$(3),$(4),-O3 $(5)))
endef
$(call nic_table_test,dir,nic_dir,dir.cpp,$(call objs,$(NIC_TABLES_C)),-GBucketBits=17)
$(call nic_table_test,dir_trace,nic_dir,dir_trace.cpp,$(call objs,$(NIC_TABLES_C)),-GBucketBits=17)
$(BUILD)/tests/rtl/nic/dir $(BUILD)/tests/rtl/nic/dir_trace: tests/rtl/nic/dir_bench.hpp

$(eval $(call rtl_test,rtl/nic/late,late_tb,$(NIC_TABLE_PKGS) tests/rtl/nic/late_tb.sv,tests/rtl/nic/late.cpp,,-O3))
$(eval $(call rtl_test,rtl/nic/kv,kv_tb,$(NIC_TABLE_PKGS) tests/rtl/nic/kv_tb.sv,tests/rtl/nic/kv.cpp,,-O3))

.PHONY: soak-nic-kv
soak-nic-kv: $(BUILD)/tests/rtl/nic/kv
	@MR_KV_SEEDS=3000 $< -n stalls
SOAKS += soak-nic-kv

$(eval $(call rtl_test,rtl/nic/tables,tables_tb,$(NIC_TABLE_PKGS) tests/rtl/nic/tables_tb.sv,\
	tests/rtl/nic/tables.cpp,$(call objs,$(NIC_TABLES_C)),-O3))

.PHONY: bench-nic-tables
bench-nic-tables: $(addprefix $(BUILD)/tests/,unit/nic/tables $(addprefix rtl/nic/,dir dir_trace late kv))
	@$(BUILD)/tests/unit/nic/tables -n quarter_million | grep directory:
	@$(BUILD)/tests/rtl/nic/dir -n rate_and_latency | grep directory:
	@$(BUILD)/tests/rtl/nic/dir_trace | grep -v passed
	@$(BUILD)/tests/rtl/nic/late -n rate | grep keys:
	@$(BUILD)/tests/rtl/nic/kv -n rates | grep engines:
BENCHES += bench-nic-tables
