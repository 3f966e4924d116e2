import fc from 'fast-check'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { DocumentKind } from '../../../../src/base/domain/resources.ts'
import { createKindCheck, isDocumentValue } from '../../../../src/sync/catalog/answers/kind-check.ts'

const FOLDERS: Record<string, DocumentKind> = {
  sboms: 'sbom',
  vex: 'vex',
  provenance: 'provenance',
}
const STRICT = Object.values(FOLDERS)

function verdict(kind: DocumentKind, bytes: Uint8Array, step = 65_536) {
  const check = createKindCheck(kind)
  for (let at = 0; at < bytes.length; at += step) check.write(Buffer.from(bytes.subarray(at, at + step)))
  return check.end()
}

/** Real documents, where they are at hand; of a VEX hub its own index is none. */
const REAL = Object.entries(FOLDERS).flatMap(([folder, kind]) => {
  const at = join('../shared/data', folder)
  if (!existsSync(at)) return []
  const names = readdirSync(at, { recursive: true, encoding: 'utf8' })
  const documents = names.filter((name) => !name.startsWith('vexhub-'))
  return documents.map((name) => ({ kind, file: join(at, name) }))
})

describe('real documents', () => {
  test.runIf(REAL.length > 0)('are recognised as their kind', () => {
    for (const { kind, file } of REAL)
      expect([file, verdict(kind, readFileSync(file))]).toEqual([
        file,
        expect.objectContaining({ type: expect.any(String) as string }),
      ])
  })

  test.runIf(REAL.length > 0)('cut short are refused wherever the cut is', () => {
    for (const { kind, file } of REAL) {
      const bytes = readFileSync(file)
      if (bytes[0] !== 0x7b || file.endsWith('.jsonl')) continue
      for (const part of [0.01, 0.5, 0.9]) {
        const cut = bytes.subarray(0, Math.max(1, Math.floor(bytes.length * part)))
        expect([file, part, verdict(kind, cut)]).toEqual([file, part, { refused: expect.any(String) as string }])
      }
    }
  })
})

describe('an SBOM in XML', () => {
  const whole = '<?xml version="1.0"?><bom xmlns="http://cyclonedx.org/schema/bom/1.6"><a><b/></a></bom>\n<!-- x -->\n'

  test('is whole with its end tag, and a comment behind it', () => {
    for (const step of [1, 7, 65_536])
      expect(verdict('sbom', Buffer.from(whole), step)).toMatchObject({ format: 'cyclonedx' })
  })

  test('is refused wherever it is cut', () => {
    const end = whole.indexOf('</bom>') + '</bom>'.length
    for (let at = 1; at < end; at++)
      expect(verdict('sbom', Buffer.from(whole.slice(0, at))), whole.slice(0, at)).toHaveProperty('refused')
  })
})

describe('the check of a document’s kind', () => {
  const PAGES = [
    '<!doctype html><html><body>Sign in</body></html>',
    '\ufeff\n <!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN">',
    '<html lang="en">',
    '<HTML><HEAD>',
  ]

  test.each(PAGES)('refuses a page of HTML for every kind: %s', (page) => {
    for (const kind of [...STRICT, 'text'] as const)
      expect(verdict(kind, Buffer.from(page), 1)).toEqual({
        refused: expect.stringContaining('HTML') as string,
      })
  })

  test('refuses an empty document for every kind', () => {
    for (const kind of [...STRICT, 'text'] as const)
      expect(verdict(kind, Buffer.alloc(0))).toEqual({ refused: 'the document is empty' })
  })

  test('refuses any bytes and any JSON without an exception', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 300 }),
          fc.json().map((text) => Buffer.from(text)),
        ),
        fc.constantFrom(...STRICT),
        (bytes, kind) => {
          expect(verdict(kind, bytes)).toHaveProperty('refused')
        },
      ),
    )
  })

  test.each([
    ['sbom', '{"error":"bomFormat CycloneDX"}'],
    ['sbom', '[[{"bomFormat":"CycloneDX"}]]'],
    ['sbom', '{"inner":{"bomFormat":"CycloneDX"}}'],
    ['vex', '{"message":"not found"}'],
    ['provenance', '{"_type":"https://example.com/Statement/v1"}'],
    ['provenance', '{"payload":"e30="}'],
    ['sbom', '<?xml version="1.0"?><feed/>'],
  ] as const)('refuses as %s: %s', (kind, text) => {
    expect(verdict(kind, Buffer.from(text))).toHaveProperty('refused')
  })

  test.each([
    ['sbom', '[{"bomFormat":"CycloneDX"},{"bomFormat":"CycloneDX"}]', 'application/json'],
    ['sbom', '{"bomFormat":"CycloneDX"}\n{"spdxVersion":"SPDX-2.3"}', 'application/jsonl'],
    ['vex', ' [ {"@context":"https://openvex.dev/ns"} ]', 'application/json'],
  ] as const)('accepts several documents as %s: %s', (kind, text, type) => {
    for (const step of [1, 7, text.length]) expect(verdict(kind, Buffer.from(text), step)).toMatchObject({ type })
  })
})

test.each([
  ['vex', { document: { url: 'https://x.example/' } }, false],
  ['vex', { document: { category: 'csaf_vex' } }, true],
  ['vex', { schema: 'csaf', item: { document: { tracking: {} } } }, true],
  ['provenance', { attestations: [{ url: 'https://x.example/' }] }, false],
  ['provenance', { attestations: [{ bundle: { dsseEnvelope: {} } }] }, true],
  ['sbom', { bomFormat: 'CycloneDX' }, true],
] as const)('an object counts as %s by what it contains: %j is %s', (kind, value, is) => {
  expect(isDocumentValue(kind, value)).toBe(is)
})

test.each([
  ['sbom', '\ufeff{"bomFormat":"CycloneDX"}', 'application/vnd.cyclonedx+json'],
  ['sbom', '{"$schema":"x","bomFormat":"CycloneDX","a":[]}', 'application/vnd.cyclonedx+json'],
  ['sbom', '{"spdxVersion":"SPDX-2.3"}', 'application/spdx+json'],
  ['sbom', '{"@context":"https://spdx.org/rdf/3.0.1/spdx-context.jsonld"}', 'application/spdx+json'],
  ['sbom', 'SPDXVersion: SPDX-2.3\n', 'text/spdx; charset=utf-8'],
  ['sbom', '<?xml version="1.0"?><bom xmlns="http://cyclonedx.org/schema/bom/1.6"/>', 'application/vnd.cyclonedx+xml'],
  ['vex', '{"@context":"https:\\/\\/openvex.dev\\/ns\\/v0.2.0"}', 'application/json'],
  ['vex', '{"document":{"category":"csaf_vex"}}', 'application/json'],
  ['provenance', '{"_type":"https:\\/\\/in-toto.io\\/Statement\\/v1"}', 'application/vnd.in-toto+json'],
  ['provenance', '{"payloadType":"application/vnd.in-toto+json","payload":"e30="}', 'application/json'],
  ['provenance', '{"payloadType":"x","payload":""}\n{"payloadType":"x","payload":""}', 'application/jsonl'],
  ['provenance', '-----BEGIN PUBLIC KEY-----\n', 'application/x-pem-file'],
  ['text', '--- a/x\n+++ b/x\n', 'text/plain; charset=utf-8'],
] as const)('%s: %j is accepted as %s', (kind, text, type) => {
  expect(verdict(kind, Buffer.from(text), 3)).toMatchObject({ type })
})
