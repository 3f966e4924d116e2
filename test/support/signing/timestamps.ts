import { type KeyObject, createHash, sign } from 'node:crypto'
import { ECDSA, der, generalizedTime, integer, octets, oid, sequence, setOf } from './der.ts'

const SHA256 = sequence(oid('2.16.840.1.101.3.4.2.1'))
const SIGNED_DATA = oid('1.2.840.113549.1.7.2')
const TST_INFO = oid('1.2.840.113549.1.9.16.1.4')
const CONTENT_TYPE = oid('1.2.840.113549.1.9.3')
const MESSAGE_DIGEST = oid('1.2.840.113549.1.9.4')
const POLICY = oid('1.3.6.1.4.1.57264.2')
const SCT_LIST = oid('1.3.6.1.4.1.11129.2.4.2')
/** The serial number of every certificate of a test. */
const SERIAL = integer(7)

interface StampParts {
  readonly at: Date
  /** Name of the authority, in DER. */
  readonly issuer: Buffer
  readonly key: KeyObject
}

/** Returns an RFC 3161 response: when an authority saw these bytes. */
export function timestampOf(data: Buffer, { at, issuer, key }: StampParts): Buffer {
  const imprint = sequence(SHA256, octets(sha256(data)))
  const info = sequence(integer(1), POLICY, imprint, integer(1), generalizedTime(at))
  const attributes = [sequence(CONTENT_TYPE, setOf(TST_INFO)), sequence(MESSAGE_DIGEST, setOf(octets(sha256(info))))]
  const signature = octets(sign('sha256', setOf(...attributes), key))
  const signer = sequence(integer(1), sequence(issuer, SERIAL), SHA256, der(0xa0, ...attributes), ECDSA, signature)
  const content = sequence(TST_INFO, der(0xa0, octets(info)))
  const signedData = sequence(integer(3), setOf(SHA256), content, setOf(signer))
  return sequence(sequence(integer(0)), sequence(SIGNED_DATA, der(0xa0, signedData)))
}

interface SctParts {
  /** What is signed of the certificate, without the timestamp. */
  readonly body: Buffer
  /** SubjectPublicKeyInfo of the certificate's issuer. */
  readonly issuerKey: Buffer
  readonly at: Date
}

/** Returns the extension of a certificate with the timestamp of a log of certificates (RFC 6962). */
export function sctOf(
  { id, key }: { readonly id: Buffer; readonly key: KeyObject },
  { body, issuerKey, at }: SctParts,
): Buffer {
  const time = Buffer.alloc(8)
  time.writeBigUInt64BE(BigInt(at.getTime()))
  const entry = [sha256(issuerKey), number(body.length, 3), body]
  const signed = Buffer.concat([Buffer.from([0, 0]), time, number(1, 2), ...entry, number(0, 2)])
  const signature = sign('sha256', signed, key)
  const head = [Buffer.from([0]), id, time, number(0, 2), Buffer.from([4, 3])]
  const sct = Buffer.concat([...head, number(signature.length, 2), signature])
  const list = Buffer.concat([number(sct.length + 2, 2), number(sct.length, 2), sct])
  return sequence(SCT_LIST, octets(octets(list)))
}

function number(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes)
  buffer.writeUIntBE(value, 0, bytes)
  return buffer
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}
