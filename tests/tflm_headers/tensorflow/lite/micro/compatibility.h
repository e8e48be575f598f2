// A stand-in for TFLM's header of this name: what exported headers and the pages of doc/ use of it.
#ifndef STANDIN_MICRO_COMPATIBILITY_H_
#define STANDIN_MICRO_COMPATIBILITY_H_

// As in a build with TF_LITE_STATIC_MEMORY: what has virtual functions cannot be deleted, so each class needs it.
#define TF_LITE_REMOVE_VIRTUAL_DELETE \
  void operator delete(void*) {}

#endif
