import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createSignatureCheck } from '../../../src/documents/signatures/check.ts'
import { IDENTITY, SIGNED_AT, createAuthority, createLog } from '../../support/signing/authority.ts'
import { type KeylessBundle, keylessBundle, statementOf } from '../../support/signing/documents.ts'

const IMAGE = `sha256:${'ab'.repeat(32)}`
const AUTHORITY = createAuthority()
const FOLDER = mkdtempSync(join(tmpdir(), 'patchmirror-times-'))
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }))
let files = 0

/** Judges a bundle by a trusted root; returns the state, and the signer or the reason. */
async function judged(bundle: object, root: object): Promise<string> {
  const file = join(FOLDER, String(++files))
  writeFileSync(file, JSON.stringify(root))
  const signers = [`${IDENTITY.issuer} ${IDENTITY.subject}`]
  const check = createSignatureCheck({ signatures: null, trustRoot: [file], signers })
  const result = await check?.judge([Buffer.from(JSON.stringify(bundle))], [IMAGE])
  return `${result?.state ?? 'off'}: ${result?.signer ?? result?.reason ?? ''}`
}

const { trustedRoot, otherRoots } = AUTHORITY
const keyless = (): KeylessBundle => keylessBundle(AUTHORITY, statementOf(IMAGE))

/** A bundle without an entry of a log, with a timestamp of its signature by an authority. */
function stamped(at: Date, authority = AUTHORITY, data?: Buffer): object {
  const bundle = keyless()
  const [first] = bundle.dsseEnvelope.signatures
  const signature = data ?? Buffer.from(first?.sig ?? '', 'base64')
  const signedTimestamp = authority.stamp(signature, at).toString('base64')
  const timestampVerificationData = { rfc3161Timestamps: [{ signedTimestamp }] }
  return {
    ...bundle,
    verificationMaterial: { ...bundle.verificationMaterial, tlogEntries: [], timestampVerificationData },
  }
}

const later = (minutes: number): Date => new Date(SIGNED_AT.getTime() + minutes * 60_000)

test('A timestamp of a trusted authority proves the time of a signature where the trusted root has no log', async () => {
  expect(await judged(stamped(later(5)), otherRoots.timestamps)).toMatch(/^verified: https:/)
  const bundle = keyless()
  const without = { ...bundle, verificationMaterial: { ...bundle.verificationMaterial, tlogEntries: [] } }
  expect(await judged(without, otherRoots.timestamps)).toMatch(/^failed: the time of its signature is not proved/)
})

test('A timestamp does not stand for the entry of a log where the trusted root has one', async () => {
  const root = { ...otherRoots.timestamps, tlogs: trustedRoot.tlogs }
  expect(await judged(stamped(later(5)), root)).toBe('failed: it has no entry of a transparency log')
})

test('A timestamp outside the time in which the certificate is valid fails', async () => {
  for (const at of [later(-1), later(11)])
    expect(await judged(stamped(at), otherRoots.timestamps)).toMatch(/^failed: its certificate is not accepted/)
})

test('A timestamp of another authority, of other bytes, or without an authority that is trusted fails', async () => {
  const said = /^failed: the time of its signature is not proved/
  expect(await judged(stamped(later(5), createAuthority()), otherRoots.timestamps)).toMatch(said)
  expect(await judged(stamped(later(5), AUTHORITY, Buffer.from('other')), otherRoots.timestamps)).toMatch(said)
  expect(await judged(stamped(later(5)), { ...otherRoots.timestamps, timestampAuthorities: [] })).toMatch(said)
})

test('A certificate without the timestamp of a trusted log of certificates fails where the trusted root has one', async () => {
  const bundleOf = (issued = AUTHORITY.issue()): object => keylessBundle(AUTHORITY, statementOf(IMAGE), { issued })
  expect(await judged(bundleOf(), trustedRoot)).toMatch(/^verified/)
  expect(await judged(bundleOf(), otherRoots.ctlog)).toMatch(
    /^failed: its certificate is not accepted \(expected 1 SCTs/,
  )
  expect(await judged(bundleOf(AUTHORITY.issue({ ctlog: AUTHORITY.log })), otherRoots.ctlog)).toMatch(/^verified/)
  const other = AUTHORITY.issue({ ctlog: createLog() })
  expect(await judged(bundleOf(other), otherRoots.ctlog)).toMatch(/^failed: its certificate is not accepted/)
})
