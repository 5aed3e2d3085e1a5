$(eval $(call unit_test,unit/nic/tables,tests/unit/nic/tables_test.cpp host/nic/tables.c host/core/error.c,))
