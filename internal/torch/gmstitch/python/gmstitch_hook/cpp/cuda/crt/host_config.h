// Stands in for a header of CUDA's compiler, which the packages of its runtime lack: the names of calling conventions.
#pragma once

#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDACBX
