import { createPublicKey, verify } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox } from '../../server.ts'
import { authenticated } from './provenance.ts'
import { sandboxes } from '../../fixtures.ts'
import { type Json, asAdmin, ask, bearer } from '../asking.ts'

const open = sandboxes()
let now = Date.UTC(2026, 5, 1)
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await open({ now: () => now, service: { urlSeconds: 60 } })
})

/** A tag's artifact answer. */
const named = async (tag: number, artifact: string): Promise<Json> =>
  (await asAdmin(sandbox, `/v1/tags/${sandbox.service.ids('tags')[tag] ?? ''}/${artifact}`)).value

const urlOf = async (tag: number, artifact: string): Promise<string> =>
  String((await named(tag, artifact))[`${artifact}_file_url`])

const documents = async (artifact: string): Promise<Json[]> => {
  const read = async (tag: number) => (await ask(await urlOf(tag, artifact))).value
  return Promise.all(Array.from({ length: 15 }, (_, tag) => read(tag)))
}

describe('an artifact answer', () => {
  test('names a fresh URL each time, on the artifact host', async () => {
    const one = await urlOf(0, 'sbom')
const two = await urlOf(0, 'sbom')
    expect(one).not.toBe(two)
    expect(new URL(one).origin).toBe(sandbox.artifactUrl)
    expect((await ask(one)).bytes.equals((await ask(two)).bytes)).toBe(true)
  })

  test('has no document for a tag that is not remediated', async () => {
    const id = sandbox.service.ids('tags')[17] ?? ''
    expect((await asAdmin(sandbox, `/v1/tags/${id}`)).value['remediated']).toBe(false)
    expect((await asAdmin(sandbox, `/v1/tags/${id}/sbom`)).status).toBe(404)
  })

  test('has any number of patches, or none, each a unified diff', async () => {
    const seen: number[] = []
    for (const id of sandbox.service.ids('packages').slice(0, 4)) {
      const { value } = await asAdmin(sandbox, `/v1/packages/${id}/artifacts/patches`)
      const urls = value['patch_files_urls'] as string[]
      seen.push(urls.length)
      for (const url of urls) {
        const { bytes, headers } = await ask(url)
        expect(headers.get('content-type')).toMatch(/^text\/x-diff/)
        expect(bytes.toString()).toMatch(/^diff --git a\/.+\n--- a\/.+\n\+\+\+ b\/.+\n@@ /m)
      }
    }
    expect(seen).toEqual([0, 1, 2, 3])
  })
})

describe('the sandbox’s documents', () => {
  test('are CycloneDX 1.5 and 1.6 and SPDX SBOMs of 5 to 200 KB', async () => {
    const found = await documents('sbom')
    const kinds = found.map((one) => one['specVersion'] ?? one['spdxVersion'])
    expect(new Set(kinds)).toEqual(new Set(['1.5', '1.6', 'SPDX-2.3']))
    for (const one of found) {
      const size = JSON.stringify(one).length
      expect(size).toBeGreaterThan(4000)
      expect(size).toBeLessThan(220_000)
      const parts = (one['components'] ?? one['packages']) as Json[]
      expect(JSON.stringify(parts[0])).toContain('pkg:')
    }
  })

  test('are OpenVEX and CycloneDX VEX', async () => {
    const found = await documents('vex')
    const open = found.filter((one) => one['@context'] === 'https://openvex.dev/ns/v0.2.0')
    const cyclone = found.filter((one) => one['bomFormat'] === 'CycloneDX')
    expect(open.length + cyclone.length).toBe(found.length)
    expect(open[0]).toHaveProperty('statements.0.vulnerability.name')
    expect(cyclone[0]).toHaveProperty('vulnerabilities.0.analysis.state')
  })

  test('are in-toto statements of SLSA provenance with a valid DSSE signature', async () => {
    const { provenance_file_url: url, cosign_public_key_url: keyUrl } = await named(0, 'provenance')
    const envelope = (await ask(String(url))).value as {
      payloadType: string
      payload: string
      signatures: [{ sig: string }]
    }
    const pem = (await ask(String(keyUrl))).bytes
    expect(pem.equals(sandbox.service.publicKey())).toBe(true)
    const payload = Buffer.from(envelope.payload, 'base64')
    const signature = Buffer.from(envelope.signatures[0].sig, 'base64')
    expect(verify(null, authenticated(payload), createPublicKey(pem), signature)).toBe(true)
    expect(envelope.payloadType).toBe('application/vnd.in-toto+json')
    expect(JSON.parse(payload.toString())).toMatchObject({
      _type: 'https://in-toto.io/Statement/v1',
      predicateType: 'https://slsa.dev/provenance/v1',
    })
  })

  test('are shared by several tags, byte for byte', async () => {
    const read = async (tag: number) => (await ask(await urlOf(tag, 'sbom'))).bytes
    expect((await read(2)).equals(await read(3))).toBe(true)
    expect((await read(1)).equals(await read(2))).toBe(false)
  })

  test('have validators, ranges and gzip', async () => {
    const url = await urlOf(0, 'sbom')
    const whole = await ask(url)
    expect(whole.headers.get('content-encoding')).toBe('gzip')
    const plain = await ask(url, { headers: { 'accept-encoding': 'identity' } })
    const etag = plain.headers.get('etag') ?? ''
    const part = await ask(url, { headers: { 'accept-encoding': 'identity', range: 'bytes=5-14' } })
    expect([part.status, part.bytes.equals(whole.bytes.subarray(5, 15))]).toEqual([206, true])
    expect(
      (await ask(url, { headers: { 'accept-encoding': 'identity', 'if-none-match': etag } }))
        .status,
    ).toBe(304)
  })
})

describe('a pre-signed URL', () => {
  const code = async (url: string, method = 'GET', headers = {}) => {
    const { status, bytes } = await ask(url, { method, headers })
    return [status, /<Code>(\w+)</.exec(bytes.toString())?.[1]]
  }

  test('expires by the clock', async () => {
    const url = await urlOf(0, 'vex')
    now += 59_000
    expect((await ask(url)).status).toBe(200)
    now += 1000
    expect(await code(url)).toEqual([403, 'AccessDenied'])
    expect((await ask(await urlOf(0, 'vex'))).status).toBe(200)
  })

  test('that was tampered with is refused', async () => {
    const url = await urlOf(0, 'sbom')
    expect(await code(url.replace('sbom-0', 'sbom-1'))).toEqual([403, 'SignatureDoesNotMatch'])
    expect(await code(url.replace(/X-Expires=\d+/, 'X-Expires=9999999999'))).toEqual([
      403,
      'SignatureDoesNotMatch',
    ])
    expect(await code(url.replace(/\?.*/, ''))).toEqual([403, 'SignatureDoesNotMatch'])
    expect(await code(`${sandbox.artifactUrl}/other`)).toEqual([404, 'NoSuchKey'])
    expect(await code(url, 'POST')).toEqual([405, 'MethodNotAllowed'])
  })

  test('refuses a credential beside it, and the request log shows that one was sent', async () => {
    sandbox.requests.clear()
    const url = await urlOf(0, 'sbom')
    await ask(url)
    expect(await code(url, 'GET', bearer('secret'))).toEqual([400, 'InvalidArgument'])
    const sent = sandbox.requests.entries.filter(({ host }) => host === 'artifacts')
    expect(sent.map(({ headers }) => headers.authorization)).toEqual([undefined, 'Bearer secret'])
  })
})
