// SHA-1, for the handshake of WebSocket, which asks for it. Nothing that is to be safe may use it.
#pragma once

#include <string>
#include <string_view>

namespace skiff {

std::string sha1(std::string_view text);  // 20 bytes

}  // namespace skiff
