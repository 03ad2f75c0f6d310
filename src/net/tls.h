// The server's side of TLS: its context, and who a client certificate says is there. Internal to
// net/: it shows OpenSSL's types.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "base/http.h"
#include "base/result.h"

namespace skiff::net {

struct ServerTls {
  boost::asio::ssl::context context{boost::asio::ssl::context::tls_server};
  // Null where client certificates are not asked for.
  std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> client_authorities{nullptr,
                                                                             &X509_STORE_free};
};

Result<std::unique_ptr<ServerTls>> make_server_tls(const std::string& certificate_pem,
                                                   const std::string& key_pem,
                                                   const std::string& client_ca_pem);

// Fills name and organizations from the certificate of a finished handshake, if one of our
// authorities signed it for clients.
void identify(const ServerTls& tls, SSL* connection, http::Peer& peer);

}  // namespace skiff::net
