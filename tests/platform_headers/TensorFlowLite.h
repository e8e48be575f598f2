// A stand-in for the main header of TFLM's libraries for Arduino.
#ifndef STANDIN_TENSORFLOWLITE_H_
#define STANDIN_TENSORFLOWLITE_H_
#include <cstddef>
// What the Arduino IDE includes on its own.
struct Stream {
  void begin(unsigned long baud);
  void println(const char* text);
  void println(int number);
};
extern Stream Serial;
void setup();
void loop();
#endif
