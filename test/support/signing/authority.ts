import { type KeyObject, createHash, generateKeyPairSync, sign } from 'node:crypto'
import { ECDSA, bits, der, integer, oid, sequence, utcTime, utf8 } from './der.ts'
import { sctOf, timestampOf } from './timestamps.ts'

/** A transparency log with a key of its own. */
export interface Log {
  readonly key: KeyObject
  readonly id: Buffer
  readonly spki: Buffer
}

/** A certificate authority and a log: a Sigstore deployment of a test. */
export interface Authority {
  readonly log: Log
  /** The trusted_root.json that names both. */
  readonly trustedRoot: { readonly tlogs: readonly object[] }
  /** The same with a log of certificates (`ctlog`), or with the authority as one of timestamps and without the log. */
  readonly otherRoots: { readonly ctlog: object; readonly timestamps: object }
  /** Returns an RFC 3161 response about a signature. */
  stamp(signature: Buffer, at: Date): Buffer
  /** Returns a signing certificate, valid for ten minutes, and its key. */
  issue(identity?: IdentityOptions): Issued
}

interface IdentityOptions {
  readonly subject?: string
  readonly issuer?: string
  /** When the certificate begins to be valid. */
  readonly from?: Date
  /** The log of certificates whose timestamp the certificate has; absent: none. */
  readonly ctlog?: Log
}

interface Issued {
  readonly certificate: Buffer
  readonly key: KeyObject
  readonly from: Date
}

/** The identity that certificates have unless another one is given. */
export const IDENTITY = {
  subject: 'https://build.example.com/images/release.yml@refs/tags/v1',
  issuer: 'https://issuer.example.com',
}

/** When certificates begin to be valid unless another time is given. */
export const SIGNED_AT = new Date('2026-03-01T12:00:00Z')

const MINUTE = 60_000
const ISSUER_OID = '1.3.6.1.4.1.57264.1.8'
const HOST = 'log.example.com'

/** Creates a deployment. */
export function createAuthority(): Authority {
  const root = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const name = nameOf('Test authority')
  const years = { from: new Date('2020-01-01T00:00:00Z'), until: new Date('2040-01-01T00:00:00Z') }
  const isCa = sequence(oid('2.5.29.19'), der(1, Buffer.from([255])), der(4, sequence(der(1, Buffer.from([255])))))
  const certificate = certificateOf({
    issuer: name,
    subject: name,
    ...years,
    key: root.publicKey,
    signer: root.privateKey,
    extensions: [isCa],
  })
  const clock = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ofClock = certificateOf({
    issuer: name,
    subject: nameOf('Test timestamps'),
    ...years,
    key: clock.publicKey,
    signer: root.privateKey,
    extensions: [],
  })
  const log = createLog()
  const trustedRoot = trustedRootOf(certificate, log)
  return {
    log,
    trustedRoot,
    otherRoots: {
      ctlog: { ...trustedRoot, ctlogs: trustedRoot.tlogs },
      timestamps: { ...trustedRoot, tlogs: [], timestampAuthorities: [clockOf(ofClock, certificate)] },
    },
    stamp: (signature, at) => timestampOf(signature, { at, issuer: name, key: clock.privateKey }),
    issue({ subject = IDENTITY.subject, issuer = IDENTITY.issuer, from = SIGNED_AT, ctlog } = {}) {
      const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const san = sequence(oid('2.5.29.17'), der(4, sequence(der(0x86, Buffer.from(subject)))))
      const by = sequence(oid(ISSUER_OID), der(4, utf8(issuer)))
      const parts = {
        issuer: name,
        subject: sequence(),
        from,
        until: new Date(from.getTime() + 10 * MINUTE),
        key: leaf.publicKey,
        signer: root.privateKey,
        extensions: [san, by],
      }
      const issuerKey = root.publicKey.export({ type: 'spki', format: 'der' })
      const scts = ctlog === undefined ? [] : [sctOf(ctlog, { body: bodyOf(parts), issuerKey, at: from })]
      const made = certificateOf({ ...parts, extensions: [...parts.extensions, ...scts] })
      return { certificate: made, key: leaf.privateKey, from }
    },
  }
}

/** Creates a log. */
export function createLog(): Log {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  return { key: privateKey, spki, id: createHash('sha256').update(spki).digest() }
}

function nameOf(text: string): Buffer {
  return sequence(der(0x31, sequence(oid('2.5.4.3'), utf8(text))))
}

interface CertificateParts {
  readonly issuer: Buffer
  readonly subject: Buffer
  readonly from: Date
  readonly until: Date
  readonly key: KeyObject
  readonly signer: KeyObject
  readonly extensions: readonly Buffer[]
}

function certificateOf(parts: CertificateParts): Buffer {
  const body = bodyOf(parts)
  return sequence(body, ECDSA, bits(sign('sha256', body, parts.signer)))
}

/** The part of a certificate that is signed. */
function bodyOf({ issuer, subject, from, until, key, extensions }: CertificateParts): Buffer {
  return sequence(
    der(0xa0, integer(2)),
    integer(7),
    ECDSA,
    issuer,
    sequence(utcTime(from), utcTime(until)),
    subject,
    key.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  )
}

function trustedRootOf(certificate: Buffer, log: Log) {
  const validFor = { start: '2020-01-01T00:00:00Z' }
  const publicKey = {
    rawBytes: log.spki.toString('base64'),
    keyDetails: 'PKIX_ECDSA_P256_SHA_256',
    validFor,
  }
  const logId = { keyId: log.id.toString('base64') }
  return {
    mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
    tlogs: [{ baseUrl: `https://${HOST}`, hashAlgorithm: 'SHA2_256', publicKey, logId }],
    certificateAuthorities: [
      {
        subject: { organization: 'test', commonName: 'Test authority' },
        uri: 'https://ca.example.com',
        certChain: chainOf(certificate),
        validFor,
      },
    ],
    ctlogs: [],
    timestampAuthorities: [],
  }
}

/** An authority of timestamps, as a trusted root names it. */
function clockOf(...certificates: readonly Buffer[]): object {
  return {
    uri: 'https://time.example.com',
    certChain: chainOf(...certificates),
    validFor: { start: '2020-01-01T00:00:00Z' },
  }
}

function chainOf(...certificates: readonly Buffer[]): object {
  return { certificates: certificates.map((one) => ({ rawBytes: one.toString('base64') })) }
}

/** Returns the entry of a log about a signed statement, with its promise and its proof. */
export function entryOf(log: Log, envelope: { payload: string; sig: string }, at: Date): object {
  const sha256 = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest()
  const hash = sha256(Buffer.from(envelope.payload, 'base64')).toString('hex')
  const spec = {
    payloadHash: { algorithm: 'sha256', value: hash },
    signatures: [{ signature: envelope.sig, verifier: '' }],
  }
  const body = Buffer.from(JSON.stringify({ apiVersion: '0.0.1', kind: 'dsse', spec }))
  const integratedTime = Math.floor(at.getTime() / 1000)
  const promised = JSON.stringify({
    body: body.toString('base64'),
    integratedTime,
    logID: log.id.toString('hex'),
    logIndex: 0,
  })
  const root = sha256(Buffer.concat([Buffer.from([0]), body]))
  const note = `${HOST} - 1\n1\n${root.toString('base64')}\n`
  const signed = Buffer.concat([log.id.subarray(0, 4), sign('sha256', Buffer.from(note), log.key)])
  return {
    logIndex: '0',
    logId: { keyId: log.id.toString('base64') },
    kindVersion: { kind: 'dsse', version: '0.0.1' },
    integratedTime: String(integratedTime),
    inclusionPromise: {
      signedEntryTimestamp: sign('sha256', Buffer.from(promised), log.key).toString('base64'),
    },
    inclusionProof: {
      logIndex: '0',
      rootHash: root.toString('base64'),
      treeSize: '1',
      hashes: [],
      checkpoint: { envelope: `${note}\n\u2014 ${HOST} ${signed.toString('base64')}\n` },
    },
    canonicalizedBody: body.toString('base64'),
  }
}
