// A stand-in for ESP-IDF's header.
#ifndef STANDIN_ESP_ATTR_H_
#define STANDIN_ESP_ATTR_H_
#define EXT_RAM_BSS_ATTR __attribute__((section(".ext_ram.bss")))
#endif
