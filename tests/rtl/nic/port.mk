# The stream side of the NIC: receiver, buffers, crossbar, transmitter.
NIC_T := tests/rtl/nic
NIC_PKGS := rtl/nic/nic_frame_pkg.sv rtl/nic/nic_pkg.sv rtl/nic/nic_rx_pkg.sv

$(eval $(call rtl_test,rtl/nic/rx,rx_tb,$(NIC_PKGS) $(NIC_T)/rx_tb.sv,$(NIC_T)/rx.cpp,,))
$(BUILD)/tests/rtl/nic/rx: $(NIC_T)/frames.hpp tests/rtl/common/bench.hpp
$(eval $(call rtl_test,rtl/nic/buf,buf_tb,$(NIC_PKGS) $(NIC_T)/buf_tb.sv,$(NIC_T)/buf.cpp,,))
$(BUILD)/tests/rtl/nic/buf: $(NIC_T)/frames.hpp tests/rtl/common/bench.hpp
