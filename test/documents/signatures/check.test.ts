import { createHmac, createPublicKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type SignatureSettings, createSignatureCheck } from '../../../src/documents/signatures/check.ts'
import { MAX_SIGNED_BYTES } from '../../../src/documents/signatures/envelopes.ts'
import { IDENTITY, SIGNED_AT, createAuthority, createLog } from '../../support/signing/authority.ts'
import { IN_TOTO, envelopeOf, keylessBundle, statementOf } from '../../support/signing/documents.ts'

const IMAGE = `sha256:${'ab'.repeat(32)}`
const OTHER = `sha256:${'cd'.repeat(32)}`
const SIGNER = `${IDENTITY.issuer} ${IDENTITY.subject}`
const AUTHORITY = createAuthority()
const KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const OTHER_KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' })

const FOLDER = mkdtempSync(join(tmpdir(), 'patchmirror-trust-'))
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }))
let files = 0

function fileOf(content: string): string {
  const file = join(FOLDER, String(++files))
  writeFileSync(file, content)
  return file
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }).toString()
}

const ROOT_FILE = fileOf(JSON.stringify(AUTHORITY.trustedRoot))
const KEY_FILE = fileOf(pemOf(KEY.publicKey))

/** Judges documents as artifacts of an image; returns the state, and the signer or the reason. */
async function judged(
  documents: readonly (object | string | Buffer)[],
  settings: Partial<SignatureSettings> = {},
  subjects: readonly string[] = [IMAGE],
): Promise<string> {
  const given = {
    signatures: null,
    trustRoot: [ROOT_FILE, KEY_FILE],
    signers: [SIGNER],
    ...settings,
  }
  const check = createSignatureCheck(given)
  const bytes = documents.map((one) =>
    Buffer.isBuffer(one) || typeof one === 'string' ? Buffer.from(one) : Buffer.from(JSON.stringify(one)),
  )
  const { state, signer, reason } = (await check?.judge(bytes, subjects)) ?? { state: 'off' }
  return `${state}: ${signer ?? reason ?? ''}`
}

const keyless = (payload = statementOf(IMAGE), options = {}) => keylessBundle(AUTHORITY, payload, options)
const keyed = (payload = statementOf(IMAGE), keys: readonly KeyObject[] = [KEY.privateKey]) => envelopeOf(payload, keys)

describe('a document that is signed with a key', () => {
  test('is verified by a trusted key of each type', async () => {
    const ed25519 = generateKeyPairSync('ed25519')
    const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
    for (const { privateKey, publicKey } of [KEY, ed25519, p384, rsa]) {
      const trustRoot = [fileOf(pemOf(publicKey))]
      const found = await judged([keyed(statementOf(IMAGE), [privateKey])], {
        trustRoot,
        signers: [],
      })
      expect(found, publicKey.asymmetricKeyType).toMatch(/^verified: key sha256:[0-9a-f]{64}$/)
    }
  })

  test('is verified where the signature is two plain numbers, and fails with another key', async () => {
    for (const namedCurve of ['P-256', 'P-384', 'P-521']) {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve })
      const trustRoot = [fileOf(pemOf(publicKey))]
      const envelope = keyed()
      const payload = Buffer.from(envelope.payload, 'base64')
      const head = `DSSEv1 ${IN_TOTO.length} ${IN_TOTO} ${payload.length} `
      const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const
      const sig = sign('sha256', Buffer.concat([Buffer.from(head), payload]), key)
      const plain = { ...envelope, signatures: [{ keyid: '', sig: sig.toString('base64') }] }
      expect(await judged([plain], { trustRoot }), namedCurve).toMatch(/^verified: key/)
      expect(await judged([plain]), namedCurve).toMatch(/^failed: the signature does not fit/)
    }
  })

  test('is verified in a Sigstore bundle with the hint of a key, and by one of several signatures', async () => {
    const { dsseEnvelope } = keyless()
    const bundle = {
      mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
      verificationMaterial: { publicKey: { hint: 'any' }, tlogEntries: [] },
      dsseEnvelope: keyed(),
    }
    expect(await judged([bundle])).toMatch(/^verified: key/)
    expect(await judged([{ ...bundle, dsseEnvelope }])).toMatch(/^failed: the signature does not fit/)
    expect(await judged([keyed(statementOf(IMAGE), [OTHER_KEY.privateKey, KEY.privateKey])])).toMatch(/^verified: key/)
  })

  test('fails with another key, another payload, no signature and an empty one', async () => {
    expect(await judged([keyed(statementOf(IMAGE), [OTHER_KEY.privateKey])])).toMatch(
      /^failed: the signature does not fit/,
    )
    const payload = statementOf(IMAGE, { altered: true }).toString('base64')
    expect(await judged([{ ...keyed(), payload }])).toMatch(/^failed: the signature does not fit/)
    expect(await judged([{ ...keyed(), signatures: [] }])).toBe('failed: its envelope has no signature')
    expect(await judged([{ ...keyed(), signatures: [{ sig: '' }] }])).toBe('failed: a signature is empty')
  })

  test('fails where the signature is an HMAC with the public key as its secret', async () => {
    const envelope = keyed()
    const payload = Buffer.from(envelope.payload, 'base64')
    const head = `DSSEv1 ${envelope.payloadType.length} ${envelope.payloadType} ${payload.length} `
    const secrets = [
      pemOf(KEY.publicKey),
      createPublicKey(pemOf(KEY.publicKey)).export({ type: 'spki', format: 'der' }),
    ]
    for (const secret of secrets) {
      const sig = createHmac('sha256', secret).update(head).update(payload).digest('base64')
      expect(await judged([{ ...envelope, signatures: [{ keyid: 'HS256', sig }] }])).toMatch(/^failed/)
    }
  })

  test('fails where the statement is about another image, or the payload is no statement', async () => {
    expect(await judged([keyed(statementOf(OTHER))])).toBe(`failed: it is about ${OTHER}, not about the image ${IMAGE}`)
    const json = Buffer.from('{"bomFormat":"CycloneDX"}')
    expect(await judged([keyed(json)])).toBe('failed: its payload is not an in-toto statement')
    const typed = envelopeOf(statementOf(IMAGE), [KEY.privateKey], 'application/json')
    expect(await judged([typed])).toMatch(/^failed: its payload type is "application\/json"/)
  })

  test('is verified, and not compared, where the catalog says no digest', async () => {
    expect(await judged([keyed(statementOf(OTHER))], {}, [])).toMatch(/^verified: key/)
  })

  test('fails where something unsigned stands beside the signature, which readers could take for the content', async () => {
    const beside = { ...keyed(), bomFormat: 'CycloneDX', components: [] }
    expect(await judged([beside])).toBe('failed: "bomFormat" stands beside the signature and is not signed')
    expect(await judged([{ ...keyless(), bomFormat: 'CycloneDX' }])).toMatch(/^failed: "bomFormat"/)
    const lines = `${JSON.stringify(keyed())}\n{"bomFormat":"CycloneDX"}\n`
    expect(await judged([lines])).toBe('failed: a part of it is not signed')
  })

  test('fails where it is too large, or nested too deeply, to be verified', async () => {
    const large = Buffer.concat([Buffer.from('{"payloadType":"'), Buffer.alloc(MAX_SIGNED_BYTES, 'x')])
    expect(await judged([large])).toMatch(/^failed: it has 33554448 bytes/)
    const deep = `{"payloadType":${'['.repeat(1_000_001)}`
    expect(await judged([deep])).toMatch(/^failed: it is nested more than/)
    const many = { ...keyed(), signatures: Array.from({ length: 17 }, () => ({ sig: 'AA==' })) }
    expect(await judged([many])).toBe('failed: its envelope has more than 16 signatures')
  })
})

describe('a document that is signed with a certificate', () => {
  test('is verified long after the certificate has expired, by the time of its log entry', async () => {
    expect(SIGNED_AT.getTime()).toBeLessThan(Date.now())
    expect(await judged([keyless()])).toBe(`verified: ${IDENTITY.subject} (issuer ${IDENTITY.issuer})`)
  })

  test('fails where the certificate had expired, or was not valid yet, when the log took the entry', async () => {
    for (const minutes of [-1, 11]) {
      const at = new Date(SIGNED_AT.getTime() + minutes * 60_000)
      const found = await judged([keyless(statementOf(IMAGE), { at })])
      expect(found).toMatch(/^failed: its certificate is not accepted .*not valid or expired/)
    }
  })

  test('fails without a log entry, with one of another log and with one about something else', async () => {
    const bundle = keyless()
    const material = { ...bundle.verificationMaterial, tlogEntries: [] }
    expect(await judged([{ ...bundle, verificationMaterial: material }])).toBe(
      'failed: it has no entry of a transparency log',
    )
    const log = createLog()
    expect(await judged([keyless(statementOf(IMAGE), { log })])).toMatch(
      /^failed: its log entry is not of a trusted log/,
    )
    const { verificationMaterial } = keyless(statementOf(OTHER))
    const { tlogEntries } = verificationMaterial
    const mixed = {
      ...bundle,
      verificationMaterial: { ...bundle.verificationMaterial, tlogEntries },
    }
    expect(await judged([mixed])).toMatch(/^failed: its log entry is about something else/)
  })

  test('fails with a log entry whose promise and proof are left out, or whose time was changed', async () => {
    const bundle = keyless()
    const [entry] = bundle.verificationMaterial.tlogEntries
    const changed = [
      { ...entry, inclusionPromise: undefined },
      { ...entry, integratedTime: String(Math.floor(SIGNED_AT.getTime() / 1000) + 60) },
      { ...entry, inclusionProof: undefined },
    ]
    for (const one of changed) {
      const verificationMaterial = { ...bundle.verificationMaterial, tlogEntries: [one] }
      expect(await judged([{ ...bundle, verificationMaterial }])).toMatch(/^failed/)
    }
  })

  test('fails with the certificate of another authority, an altered payload and another signature', async () => {
    const bundle = keyless()
    const foreign = keylessBundle(createAuthority(), statementOf(IMAGE), { log: AUTHORITY.log })
    expect(await judged([foreign])).toMatch(/^failed: its certificate is not accepted/)
    const payload = statementOf(IMAGE, { altered: true }).toString('base64')
    const altered = { ...bundle, dsseEnvelope: { ...bundle.dsseEnvelope, payload } }
    expect(await judged([altered])).toMatch(/^failed: (?:its log entry|the signature)/)
    const { signatures } = keyed()
    const resigned = { ...bundle, dsseEnvelope: { ...bundle.dsseEnvelope, signatures } }
    expect(await judged([resigned])).toMatch(/^failed: (?:its log entry|the signature)/)
  })

  test('fails where the identity is not one that the settings name, and says whose it is', async () => {
    const name = `${IDENTITY.subject} (issuer ${IDENTITY.issuer})`
    const said = `failed: it is signed by ${name}, whom catalog.signers does not name`
    const others = [
      `${IDENTITY.issuer} https://build.example.com/other*`,
      `https://other.example.com ${IDENTITY.subject}`,
    ]
    for (const signers of [[], others]) expect(await judged([keyless()], { signers })).toBe(said)
    const signers = [`${IDENTITY.issuer} https://build.example.com/*@refs/tags/*`]
    expect(await judged([keyless()], { signers })).toMatch(/^verified/)
  })

  test('fails where only keys are trusted, and a key where only a root is', async () => {
    expect(await judged([keyless()], { trustRoot: [KEY_FILE] })).toMatch(/^failed: .*names no trusted_root.json/)
    expect(await judged([keyed()], { trustRoot: [ROOT_FILE] })).toMatch(/^failed: .*names no file of public keys/)
  })

  test('fails in words where it cannot be read', async () => {
    const bundle = keyless()
    const certificate = { rawBytes: Buffer.from('no certificate').toString('base64') }
    const verificationMaterial = { ...bundle.verificationMaterial, certificate }
    expect(await judged([{ ...bundle, verificationMaterial }])).toMatch(/^failed: it cannot be read/)
    expect(await judged([{ ...bundle, verificationMaterial: { certificate: null } }])).toMatch(/^failed/)
    expect(await judged([{ ...bundle, mediaType: 7 }])).toMatch(/^failed/)
  })
})

test('An artifact that is signed for the index or a platform of its image is verified, and says for which', async () => {
  const check = createSignatureCheck({ signatures: 'warn', trustRoot: [KEY_FILE], signers: [] })
  const judge = (about: string, subjects: readonly string[]) =>
    check?.judge([Buffer.from(JSON.stringify(keyed(statementOf(about))))], subjects)
  expect(await judge(IMAGE, [IMAGE, OTHER])).toMatchObject({ state: 'verified', subject: IMAGE })
  expect(await judge(OTHER, [IMAGE, OTHER])).toMatchObject({ state: 'verified', subject: OTHER })
  const reason = `it is about ${OTHER}, not about the image ${IMAGE}`
  expect(await judge(OTHER, [IMAGE])).toEqual({ state: 'failed', signer: null, reason, subject: IMAGE })
})

describe('an artifact', () => {
  test('is verified by all of its documents, beside which a public key says nothing', async () => {
    const lines = [keyed(), keyless()].map((one) => JSON.stringify(one)).join('\n')
    expect(await judged([lines, pemOf(KEY.publicKey)])).toMatch(/^verified: key .* and https:/)
    const attestations = [{ predicateType: 'x', bundle: keyless() }]
    expect(await judged([{ attestations }])).toMatch(/^verified: https:/)
    expect(await judged([keyed(), { bomFormat: 'CycloneDX' }])).toBe('none: it has no signature')
    expect(await judged([{ bomFormat: 'CycloneDX' }, keyed(statementOf(OTHER))])).toMatch(/^failed/)
    expect(await judged([pemOf(KEY.publicKey)])).toBe('none: it has no signed document')
    expect(await judged([])).toBe('none: it has no signed document')
  })

  test('is not judged where the settings say off, or name nothing that is trusted', () => {
    const none = { signatures: null, trustRoot: [], signers: [] }
    expect(createSignatureCheck(none)).toBeNull()
    expect(createSignatureCheck({ ...none, signatures: 'off', trustRoot: [KEY_FILE] })).toBeNull()
    expect(createSignatureCheck({ ...none, trustRoot: [KEY_FILE] })?.isEnforced).toBe(false)
    expect(createSignatureCheck({ ...none, signatures: 'enforce' })?.isEnforced).toBe(true)
  })

  test('is judged again by other keys, other signers and another mode', () => {
    const basisOf = (settings: Partial<SignatureSettings>): string | undefined =>
      createSignatureCheck({ signatures: 'warn', trustRoot: [KEY_FILE], signers: [], ...settings })?.basis
    const before = basisOf({})
    expect(basisOf({})).toBe(before)
    expect(basisOf({ trustRoot: [ROOT_FILE] })).not.toBe(before)
    expect(basisOf({ signers: [SIGNER] })).not.toBe(before)
    expect(basisOf({ signatures: 'enforce' })).not.toBe(before)
  })
})

describe('the library that verifies', () => {
  test('opens no connection: none of its packages loads a module of the network', () => {
    const root = 'node_modules/@sigstore'
    const names = readdirSync(root)
    expect(names.sort()).toEqual(['bundle', 'core', 'protobuf-specs', 'verify'])
    const files = names.flatMap((name) =>
      readdirSync(join(root, name, 'dist'), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.js'))
        .map((file) => join(root, name, 'dist', file)),
    )
    const modules = files.flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/require\("([^."][^"]*)"\)/g)].map(([, name]) => name),
    )
    const known = ['@sigstore/core', '@sigstore/protobuf-specs', '@sigstore/protobuf-specs/rekor/v2']
    expect([...new Set(modules)].sort()).toEqual([...known, 'crypto', 'util'].sort())
  })
})
