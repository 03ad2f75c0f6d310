// What test programs add to precompiled.h.
#pragma once

#include <gtest/gtest.h>

#include "cmake/precompiled.h"
