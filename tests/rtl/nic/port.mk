# The stream side of the NIC: receiver, buffers, crossbar, transmitter.
NIC_T := tests/rtl/nic
NIC_PKGS := rtl/nic/nic_frame_pkg.sv rtl/nic/nic_pkg.sv rtl/nic/nic_rx_pkg.sv

$(eval $(call rtl_test,rtl/nic/rx,rx_tb,$(NIC_PKGS) $(NIC_T)/rx_tb.sv,$(NIC_T)/rx.cpp,,))
$(BUILD)/tests/rtl/nic/rx: $(NIC_T)/frames.hpp tests/rtl/common/bench.hpp
$(eval $(call rtl_test,rtl/nic/buf,buf_tb,$(NIC_PKGS) $(NIC_T)/buf_tb.sv,$(NIC_T)/buf.cpp,,))
$(BUILD)/tests/rtl/nic/buf: $(NIC_T)/frames.hpp tests/rtl/common/bench.hpp
$(eval $(call rtl_test,rtl/nic/tx,tx_tb,$(NIC_PKGS) rtl/nic/nic_tx_pkg.sv $(NIC_T)/buf_tb.sv $(NIC_T)/tx_tb.sv,$(NIC_T)/tx.cpp,,))
$(BUILD)/tests/rtl/nic/tx: $(NIC_T)/frames.hpp tests/rtl/common/bench.hpp

# At full size: 10^8 bytes through the receiver, every total length with 1,000 addresses through the transmitter.
SOAKS += soak-nic-port
.PHONY: soak-nic-port
soak-nic-port: $(BUILD)/tests/rtl/nic/rx $(BUILD)/tests/rtl/nic/tx
	MR_FUZZ_BYTES=$(or $(MR_FUZZ_BYTES),100000000) $(BUILD)/tests/rtl/nic/rx -n mutated_bytes
	MR_TX_ADDRESSES=$(or $(MR_TX_ADDRESSES),1000) $(BUILD)/tests/rtl/nic/tx -n checksums_of_every_length

BENCHES += bench-nic-port
.PHONY: bench-nic-port
bench-nic-port: $(addprefix $(BUILD)/tests/rtl/nic/,rx buf tx)
	@echo "bench: the NIC's receiver, crossbar and transmitter, in cycles"
	@$(BUILD)/tests/rtl/nic/rx -n latency | grep '^rx'
	@$(BUILD)/tests/rtl/nic/buf -n stalled | grep '^xbar'
	@$(BUILD)/tests/rtl/nic/tx -n latency | grep '^tx'
SYNTHS += nic_rx nic_xbar nic_tx
