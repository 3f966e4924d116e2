import { systemCode } from '../../base/errors.ts'

/** Reports whether a connection failed because of a certificate. */
export function isCertificateError(error: unknown): boolean {
  return certificateAdvice(error, false) !== ''
}

/** Error codes for certificates that are not signed by a known authority. */
const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'CERT_UNTRUSTED',
  'CERT_CHAIN_TOO_LONG',
  'INVALID_CA',
])
/** Error codes for certificates whose chain ends before a known authority, as without the intermediate certificate. */
const INCOMPLETE = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])
const CERTIFICATE = /^(CERT_|ERR_TLS_CERT)|CERT_(NOT_YET_VALID|HAS_EXPIRED)|CRL_/

/** Returns advice for a rejected certificate; empty for other errors. */
export function certificateAdvice(error: unknown, proxied: boolean): string {
  const code = codeIn(error)
  if (code === undefined) return ''
  if (INCOMPLETE.has(code)) {
    const whose = proxied ? ', or the proxy,' : ''
    return (
      `; the server${whose} sent its certificate without the one that signed it, and that is not known here: where it is an ` +
      'intermediate certificate, the server must send it too; where it is that of your own authority, name its file in upstream.caFile'
    )
  }
  if (UNTRUSTED.has(code)) {
    const whose = proxied ? ', which may be that of the proxy,' : ''
    return `; the certificate is not trusted here: name the file of its authority${whose} in upstream.caFile`
  }
  return CERTIFICATE.test(code)
    ? '; the certificate is not valid for this host at this time, which upstream.caFile cannot change: check the address, the clock and the certificate'
    : ''
}

/** Returns the code of an error or of its cause. */
function codeIn(error: unknown): string | undefined {
  const code = systemCode(error)
  if (code !== undefined && !code.startsWith('UND_ERR')) return code
  return error instanceof Error && error.cause !== undefined ? codeIn(error.cause) : code
}
