#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <boost/asio/buffer.hpp>

#include "net/openssl.h"

namespace skiff::net {
namespace {

// HTTP/1.1 is all we speak. A client that offers only other protocols goes on without ALPN, as one
// that never heard of it.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned int size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kOurs, sizeof kOurs - 1, offered, size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

// The handshake proves that the client holds the key; identify() judges the certificate after it.
int accept_for_now(int, X509_STORE_CTX*) { return 1; }

std::vector<std::string> name_entries(const X509_NAME* name, int id) {
  std::vector<std::string> out;
  for (int at = X509_NAME_get_index_by_NID(name, id, -1); at >= 0;
       at = X509_NAME_get_index_by_NID(name, id, at)) {
    const ASN1_STRING* data = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    unsigned char* utf8 = nullptr;
    const int size = ASN1_STRING_to_UTF8(&utf8, data);
    if (size < 0) continue;
    out.emplace_back(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
    OPENSSL_free(utf8);
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<ServerTls>> make_server_tls(const std::string& certificate_pem,
                                                   const std::string& key_pem,
                                                   const std::string& client_ca_pem) {
  auto tls = std::make_unique<ServerTls>();
  SSL_CTX* context = tls->context.native_handle();
  boost::system::error_code error;
  tls->context.use_certificate_chain(boost::asio::buffer(certificate_pem), error);
  if (error) {
    return fail(Code::kInternal, "the server certificate cannot be read: " + error.message());
  }
  tls->context.use_private_key(boost::asio::buffer(key_pem), boost::asio::ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    return fail(Code::kInternal, "the server key cannot be read or is not the certificate's");
  }
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  // A resumed session would carry no certificate chain to verify again.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(context, &choose_protocol, nullptr);
  if (client_ca_pem.empty()) return tls;

  tls->client_authorities.reset(X509_STORE_new());
  SKIFF_ASSIGN(const auto authorities, read_certificates(client_ca_pem));
  for (const auto& authority : authorities) {
    X509_STORE_add_cert(tls->client_authorities.get(), authority.get());
    SSL_CTX_add_client_CA(context, authority.get());
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_CLIENT_ONCE, &accept_for_now);
  return tls;
}

void identify(const ServerTls& tls, SSL* connection, http::Peer& peer) {
  X509* certificate = SSL_get0_peer_certificate(connection);
  if (certificate == nullptr || !tls.client_authorities) return;
  const Owned<X509_STORE_CTX, X509_STORE_CTX_free> check(X509_STORE_CTX_new());
  // On the server's side this chain does not hold the leaf itself; either way it is only a source
  // of intermediates.
  if (!check || X509_STORE_CTX_init(check.get(), tls.client_authorities.get(), certificate,
                                    SSL_get_peer_cert_chain(connection)) != 1) {
    return;
  }
  X509_STORE_CTX_set_default(check.get(), "ssl_client");
  if (X509_verify_cert(check.get()) != 1) {
    ERR_clear_error();
    return;
  }
  const X509_NAME* subject = X509_get_subject_name(certificate);
  auto names = name_entries(subject, NID_commonName);
  // Two common names would let two readers of the certificate see two different users.
  if (names.size() != 1) return;
  peer.common_name = std::move(names.front());
  peer.organizations = name_entries(subject, NID_organizationName);
}

}  // namespace skiff::net
