#include "apiserver/streams/forward.h"

#include <algorithm>

namespace skiff::apiserver {
namespace {

// What a program has not taken yet; more is not read from the client.
constexpr std::size_t kForwardBacklogBytes = 256 * 1024;
// Each has a thread of its own.
constexpr std::size_t kPeersMax = 256;

}  // namespace

ForwardTunnel::ForwardTunnel(std::unique_ptr<ForwardChannels> channels, Dial dial)
    : channels_(std::move(channels)), dial_(std::move(dial)) {
  push({});  // what is asked for in the address begins without a word
}

void ForwardTunnel::take(const ForwardChannels::Input& input) {
  using Kind = ForwardChannels::Input::Kind;
  if (input.kind == Kind::kGone) gone_ = true;
  if (input.kind == Kind::kOpen) {
    if (peers_.size() >= kPeersMax) {
      waiting_ += channels_->finish(input.id, "too many connections at a time");
      return;
    }
    peers_[input.id] = dial_(input.port);
  }
  const auto peer = peers_.find(input.id);
  if (peer == peers_.end()) return;
  if (input.kind == Kind::kBytes) peer->second->write(input.bytes);
  if (input.kind == Kind::kEnd) peer->second->end_input();
  if (input.kind != Kind::kReset) return;
  // Nobody hears what the pod still says.
  peers_.erase(peer);
  waiting_ += channels_->finish(input.id, "");
}

void ForwardTunnel::push(std::string_view bytes) {
  if (gone_) return;
  std::vector<ForwardChannels::Input> inputs;
  channels_->take(bytes, inputs, waiting_);
  for (const ForwardChannels::Input& input : inputs) take(input);
  // A new peer is asked, too, so that its words are heard of.
  const bool news = !waiting_.empty() || !inputs.empty() || gone_;
  if (news && wake_) std::exchange(wake_, nullptr)();
}

bool ForwardTunnel::full() const {
  if (waiting_.size() > kForwardBacklogBytes) return true;
  return std::ranges::any_of(
      peers_, [](const auto& peer) { return peer.second->backlog() > kForwardBacklogBytes; });
}

bool ForwardTunnel::pull(std::string& out, std::function<void()> wake) {
  std::erase_if(peers_, [&](auto& entry) {
    auto& [id, peer] = entry;
    std::vector<Peer::Piece> pieces;
    const bool more = peer->read(pieces, wake);
    for (const Peer::Piece& piece : pieces) waiting_ += channels_->write(id, piece.bytes);
    if (more) return false;
    const auto end = peer->exit_code();
    waiting_ += channels_->finish(id, end ? "" : end.error().message);
    return true;
  });
  out += std::exchange(waiting_, {});
  if (out.empty()) wake_ = std::move(wake);
  return !gone_ && !channels_->over();
}

}  // namespace skiff::apiserver
