import { type Parsed, type Setting, textSetting } from './base.ts'
import { readPemFile } from './pem-files.ts'

/** What is not a file: what bundles carry. */
const CARRIED = 'bundle'

/** A file of what is trusted to sign artifacts: public keys in PEM, or a trusted root of Sigstore. */
export function trustFile(): Setting<string> {
  return textSetting(
    `a file of PEM public keys, a trusted_root.json of Sigstore, or "${CARRIED}"`,
    '/etc/patchmirror/signing-keys.pem',
    (path, context) => (path === CARRIED ? { value: path } : readPemFile(path, context, faultOf)),
  )
}

function faultOf(text: string): string | null {
  if (text.trimStart().startsWith('{')) return faultOfRoot(text)
  if (text.includes('PRIVATE KEY-----')) return 'contains a private key: give the public key alone'
  return text.includes('-----BEGIN PUBLIC KEY-----')
    ? null
    : 'contains neither a PEM public key (no "BEGIN PUBLIC KEY" line) nor a trusted root in JSON'
}

function faultOfRoot(text: string): string | null {
  try {
    const root = JSON.parse(text) as Readonly<Record<string, unknown>>
    return Array.isArray(root['certificateAuthorities'])
      ? null
      : 'is not a trusted root of Sigstore (it has no "certificateAuthorities")'
  } catch {
    return 'is not valid JSON'
  }
}

/** Who may sign with a certificate: the issuer of the identity and the pattern of its subject. */
export function signerIdentity(): Setting<string> {
  return textSetting(
    'an issuer, a space, and a subject in which * matches any characters',
    'https://token.actions.githubusercontent.com https://github.com/acme/images/.github/workflows/release.yml@refs/tags/*',
    parseSigner,
  )
}

function parseSigner(text: string): Parsed<string> {
  const words = text.trim().split(/\s+/)
  if (words.length === 2) return { value: words.join(' ') }
  return { fault: 'is not an issuer and a subject, with a space between them' }
}
