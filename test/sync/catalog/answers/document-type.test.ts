import { describe, expect, test } from 'vitest'
import { isMediaType } from '../../../../src/base/domain/media-type.ts'
import type { DocumentKind } from '../../../../src/base/domain/resources.ts'
import { createKindCheck } from '../../../../src/sync/catalog/answers/kind-check.ts'
import { type DocumentContent, servedType } from '../../../../src/sync/catalog/answers/document-type.ts'

/** Takes a document in pieces of three bytes, so that whatever is looked for is cut somewhere. */
function contentOf(kind: DocumentKind, text: string): DocumentContent {
  const check = createKindCheck(kind)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += 3) check.write(bytes.subarray(at, at + 3))
  const verdict = check.end()
  if ('refused' in verdict) throw new Error(verdict.refused)
  return verdict
}

const CONTENTS = {
  cyclonedx: contentOf('sbom', '{"bomFormat":"CycloneDX"}'),
  cyclonedxXml: contentOf('sbom', '<?xml version="1.0"?><bom xmlns="http://cyclonedx.org/schema/bom/1.6"/>'),
  styledXml: contentOf(
    'sbom',
    '<?xml version="1.0"?>\n<?xml-stylesheet href="x.xsl"?><bom xmlns="http://cyclonedx.org/schema/bom/1.6"/>',
  ),
  spdx: contentOf('sbom', '{"spdxVersion":"SPDX-2.3"}'),
  spdxText: contentOf('sbom', 'SPDXVersion: SPDX-2.3\n'),
  openvex: contentOf('vex', '{"@context":"https://openvex.dev/ns/v0.2.0"}'),
  csaf: contentOf('vex', '{"document":{"category":"csaf_vex"}}'),
  statement: contentOf('provenance', '{"_type":"https://in-toto.io/Statement/v1"}'),
  envelope: contentOf('provenance', '{"payloadType":"x","payload":""}'),
  lines: contentOf('provenance', '{"payloadType":"x","payload":""}\n{"payloadType":"x","payload":""}'),
  key: contentOf('provenance', '-----BEGIN PUBLIC KEY-----\n'),
  diff: contentOf('text', '--- a/x\n+++ b/x\n'),
  json: contentOf('text', '{"patches":[]}'),
  svg: contentOf('text', '<svg xmlns="http://www.w3.org/2000/svg"/>'),
  tarball: contentOf('text', '\x1f\x8b\b\0\0\0'),
} satisfies Record<string, DocumentContent>

type Name = keyof typeof CONTENTS

describe('the media type of a document', () => {
  test.each<[Name, string]>([
    ['cyclonedx', 'application/vnd.cyclonedx+json'],
    ['cyclonedx', 'application/vnd.cyclonedx+json; version=1.6'],
    ['cyclonedx', 'Application/JSON;charset="utf-8"'],
    ['cyclonedx', 'text/json'],
    ['cyclonedx', 'application/vnd.example.report+json'],
    ['cyclonedx', 'application/vnd.example.report'],
    ['cyclonedxXml', 'application/vnd.cyclonedx+xml; version=1.6'],
    ['cyclonedxXml', 'text/xml; charset=utf-8'],
    ['spdx', 'application/spdx+json'],
    ['spdxText', 'text/spdx'],
    ['spdxText', 'text/x-spdx; charset=us-ascii'],
    ['openvex', 'application/vnd.openvex+json'],
    ['csaf', 'application/csaf+json'],
    ['statement', 'application/vnd.in-toto+json'],
    ['statement', 'application/vnd.in-toto.provenance+dsse'],
    ['envelope', 'application/vnd.dsse.envelope.v1+json'],
    ['envelope', 'application/vnd.dev.sigstore.bundle+json;version=0.2'],
    ['lines', 'application/x-ndjson'],
    ['lines', 'application/vnd.in-toto.bundle+jsonl'],
    ['key', 'application/x-pem-file'],
    ['key', 'application/pem-certificate-chain'],
    ['key', 'application/pgp-keys'],
    ['diff', 'text/x-diff; charset=utf-8'],
    ['diff', 'text/plain'],
    ['diff', 'text/plain; charset=iso-8859-1'],
    ['diff', 'application/x-patch'],
    ['json', 'application/json; charset=utf-8'],
    ['tarball', 'application/gzip'],
    ['tarball', 'application/octet-stream'],
  ])('is upstream’s where it agrees with the content: %s as %s', (name, given) => {
    expect(servedType(given, CONTENTS[name])).toBe(given)
    expect(servedType(`  ${given} `, CONTENTS[name])).toBe(given)
  })

  test.each<[Name, string]>([
    ['cyclonedx', 'text/html'],
    ['cyclonedx', 'application/javascript'],
    ['cyclonedx', 'application/spdx+json'],
    ['cyclonedx', 'application/vnd.cyclonedx+xml'],
    ['cyclonedx', 'application/vnd.dsse.envelope.v1+json'],
    ['cyclonedx', 'application/xml'],
    ['cyclonedx', 'application/zip'],
    ['cyclonedx', 'application/x-yaml'],
    ['cyclonedx', 'application/x-unheard-of'],
    ['cyclonedx', 'text/csv'],
    ['cyclonedx', 'image/png'],
    ['cyclonedx', 'multipart/mixed; boundary=x'],
    ['cyclonedxXml', 'application/json'],
    ['cyclonedxXml', 'image/svg+xml'],
    ['cyclonedxXml', 'application/xhtml+xml'],
    ['spdxText', 'application/spdx+json'],
    ['spdx', 'text/spdx'],
    ['lines', 'application/json'],
    ['key', 'application/json'],
    ['key', 'text/html'],
    ['key', 'text/x-diff'],
    ['diff', 'application/json'],
    ['diff', 'application/vnd.cyclonedx+json'],
    ['diff', 'application/x-pem-file'],
    ['diff', 'application/xml'],
    ['diff', 'application/gzip'],
    ['json', 'text/x-diff; charset=utf-8'],
    ['tarball', 'text/x-diff'],
  ])('follows from the content where upstream contradicts it: %s as %s', (name, given) => {
    expect(servedType(given, CONTENTS[name])).toBe(CONTENTS[name].type)
  })

  const GENERIC = [
    '',
    'application/octet-stream',
    'binary/octet-stream',
    'application/x-download',
    'application/x-www-form-urlencoded',
    'unknown/unknown',
  ]
  test.each(GENERIC)('follows from the content where upstream says nothing: %j', (given) => {
    for (const content of [CONTENTS.cyclonedx, CONTENTS.cyclonedxXml, CONTENTS.key, CONTENTS.diff])
      expect(servedType(given, content)).toBe(content.type)
  })

  test('is not text/plain where the content says more', () => {
    for (const name of ['cyclonedx', 'cyclonedxXml', 'spdxText', 'lines', 'key', 'json'] as const)
      expect(servedType('text/plain; charset=utf-8', CONTENTS[name])).toBe(CONTENTS[name].type)
  })

  test.each<[Name, string]>([
    ['diff', 'text/html; charset=utf-8'],
    ['diff', 'text/javascript'],
    ['diff', 'application/x-javascript'],
    ['diff', 'text/css'],
    ['svg', 'image/svg+xml'],
    ['svg', 'application/xhtml+xml'],
    ['svg', 'text/xsl'],
    ['styledXml', 'application/vnd.cyclonedx+xml'],
    ['styledXml', 'text/xml'],
    ['styledXml', ''],
  ])('is application/octet-stream where a browser would execute it: %s as %s', (name, given) => {
    expect(servedType(given, CONTENTS[name])).toBe('application/octet-stream')
  })
})

describe('a media type', () => {
  test.each(['a/b', 'text/plain;charset=utf-8', 'text/plain ; charset="a \\" b" ;', `a/${'b'.repeat(127)}`])(
    'is well-formed: %s',
    (text) => {
      expect(isMediaType(text)).toBe(true)
    },
  )

  test.each([
    '',
    'text',
    'text/',
    '/plain',
    '*/*',
    'text/*',
    'text/plain, text/html',
    'text/plain; charset',
    'text/plain; charset=',
    'text/plain; charset="utf-8',
    'text/plain charset=utf-8',
    'text/plain\r\nx: y',
    'text/plain;\tcharset=utf-8',
    'text/plän',
    `a/${'b'.repeat(128)}`,
    `text/plain; x=${'y'.repeat(200)}`,
    `text/plain${'; '.repeat(94)}\u0001`,
  ])('is not well-formed: %j', (text) => {
    expect(isMediaType(text)).toBe(false)
    expect(servedType(text, CONTENTS.diff)).toBe('text/plain; charset=utf-8')
  })
})
