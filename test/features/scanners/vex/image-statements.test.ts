import { expect, test } from 'vitest'
import { countingStatements, statementsAbout } from '../../../../src/features/scanners/vex/image-statements.ts'
import { readStatements } from '../../../../src/documents/vex/statements.ts'

const NOW = Date.parse('2026-07-01T00:00:00Z')
const D = `sha256:${'d'.repeat(64)}`
const PLATFORM = `sha256:${'e'.repeat(64)}`
const ANY = 'pkg:deb/debian/zlib1g'
const ONE = `${ANY}@1.2`

type Said = readonly [status: string, parts: string | null, day: number, ids?: readonly string[], digest?: string]

/** What counts of statements about an image: their numbers. */
function counting(...all: readonly Said[]): number[] {
  const statements = all.map(([status, part, day, [name = 'CVE-1', ...aliases] = [], digest = D]) => ({
    vulnerability: { name, aliases },
    status,
    timestamp: `2026-01-${String(day).padStart(2, '0')}T00:00:00Z`,
    products: [{ '@id': `pkg:oci/a@${digest}`, ...(part !== null && { subcomponents: [{ '@id': part }] }) }],
  }))
  const content = Buffer.from(JSON.stringify({ '@context': 'openvex', statements }))
  const images = [D, PLATFORM].map((digest) => ({ digest, arch: '', isPlatform: digest !== D }))
  const image = { digest: D, tags: [{ id: 't', repository: 'a', images }] }
  const document = { digest: 'x', size: 1, changed: 1, tags: ['t'] }
  const read = readStatements(content) ?? []
  const found = countingStatements(statementsAbout(image, [[document, read]], NOW), D)
  return found.map(({ statement: { place } }) => place).sort()
}

test('of statements about one image none that counts contradicts another, whatever a client chooses', () => {
  const cases: [readonly Said[], number[]][] = [
    [[['fixed', ONE, 1]], [0]],
    [
      [
        ['fixed', ONE, 1],
        ['affected', ONE, 2],
      ],
      [1],
    ],
    [
      [
        ['fixed', ONE, 2],
        ['affected', ONE, 2],
      ],
      [1],
    ],
    [
      [
        ['fixed', ONE, 3],
        ['affected', ONE, 2],
      ],
      [0],
    ],
    [
      [
        ['fixed', ANY, 1],
        ['affected', ONE, 2],
      ],
      [1],
    ], // a wider one that rules out
    [
      [
        ['fixed', ANY, 3],
        ['affected', ONE, 2],
      ],
      [0],
    ],
    [
      [
        ['fixed', ONE, 1],
        ['affected', ANY, 2],
      ],
      [1],
    ],
    [
      [
        ['fixed', ONE, 3],
        ['affected', ANY, 2],
      ],
      [0, 1],
    ], // still open in other versions
    [
      [
        ['fixed', null, 1],
        ['affected', ONE, 1],
      ],
      [1],
    ],
    [
      [
        ['fixed', null, 2],
        ['affected', ONE, 1],
      ],
      [0],
    ],
    [
      [
        ['fixed', ONE, 1],
        ['under_investigation', null, 1],
      ],
      [1],
    ],
    [
      [
        ['fixed', ONE, 1, ['CVE-1', 'GHSA-1']],
        ['affected', ONE, 2, ['GHSA-1']],
      ],
      [1],
    ],
    [
      [
        ['fixed', ONE, 3, ['CVE-1']],
        ['affected', ONE, 2, ['CVE-1', 'CVE-2']],
      ],
      [0, 1],
    ],
    [
      [
        ['fixed', ONE, 1],
        ['affected', `${ANY}@1.3`, 2],
      ],
      [0, 1],
    ],
    [
      [
        ['fixed', ONE, 1, ['CVE-1'], PLATFORM],
        ['affected', ONE, 2],
      ],
      [1],
    ],
    [
      [
        ['fixed', ONE, 3, ['CVE-1'], PLATFORM],
        ['affected', ONE, 2],
      ],
      [0, 1],
    ], // still open on others
    [
      [
        ['fixed', ONE, 3],
        ['affected', ONE, 2, ['CVE-1'], PLATFORM],
      ],
      [0],
    ],
    [
      [
        ['fixed', ONE, 1],
        ['affected', ONE, 2, ['CVE-1'], PLATFORM],
      ],
      [1],
    ],
  ]
  for (const [all, expected] of cases) expect([all, counting(...all)]).toEqual([all, expected])
})

test('what is dated more than a day ahead rules nothing out that another statement leaves open', () => {
  const content = (timestamp: string) =>
    Buffer.from(
      JSON.stringify({
        '@context': 'openvex',
        statements: [
          {
            vulnerability: { name: 'CVE-1' },
            status: 'fixed',
            timestamp,
            products: [{ '@id': ONE }],
          },
          {
            vulnerability: { name: 'CVE-1' },
            status: 'affected',
            timestamp: '2026-01-01T00:00:00Z',
            products: [{ '@id': ONE }],
          },
        ],
      }),
    )
  const image = { digest: D, tags: [{ id: 't', repository: 'a', images: [] }] }
  const document = { digest: 'x', size: 1, changed: 1, tags: ['t'] }
  const places = (timestamp: string) =>
    countingStatements(statementsAbout(image, [[document, readStatements(content(timestamp)) ?? []]], NOW), D).map(
      ({ statement: { place } }) => place,
    )
  expect(places('2026-02-01T00:00:00Z')).toEqual([0])
  expect(places('2999-02-01T00:00:00Z')).toEqual([1])
})

const ARM = `sha256:${'f'.repeat(64)}`
const INDEX = D

/** The digests that an image's statements are about, of one that names a product. */
function about(digest: string, product: string, status: string, tags: string[] = []): string[] {
  const statements = [{ vulnerability: { name: 'CVE-1' }, status, products: [{ '@id': product }] }]
  const content = Buffer.from(JSON.stringify({ '@context': 'openvex', statements }))
  const images = [
    { digest: INDEX, arch: '', isPlatform: false },
    { digest: PLATFORM, arch: 'amd64', isPlatform: true },
    { digest: ARM, arch: 'arm64', isPlatform: true },
  ]
  const image = { digest, tags: [{ id: 't', repository: 'library/a', images }] }
  const document = { digest: 'x', size: 1, changed: 1, tags }
  return statementsAbout(image, [[document, readStatements(content) ?? []]], NOW).map((one) => one.digest)
}

test('a statement about one platform of an index is about no other one', () => {
  for (const status of ['not_affected', 'affected']) {
    const of = (digest: string, arch: string) => about(digest, `pkg:oci/a@${INDEX}${arch}`, status)
    expect([of(INDEX, ''), of(PLATFORM, ''), of(ARM, '')]).toEqual([[INDEX], [PLATFORM], [ARM]])
    expect([of(INDEX, '?arch=x86_64'), of(PLATFORM, '?arch=x86_64'), of(ARM, '?arch=x86_64')]).toEqual([
      [PLATFORM],
      [PLATFORM],
      [],
    ])
    expect([of(INDEX, '?arch=s390x'), of(PLATFORM, '?arch=s390x')]).toEqual([status === 'affected' ? [INDEX] : [], []])
  }
})

test('a document of another tag that names the image without a digest leaves open, and rules nothing out', () => {
  for (const [status, found] of [
    ['affected', [INDEX]],
    ['not_affected', []],
  ] as const) {
    expect(about(INDEX, 'pkg:oci/a', status)).toEqual(found)
    expect(about(INDEX, 'pkg:oci/a', status, ['another'])).toEqual(found)
    expect(about(INDEX, 'pkg:oci/b', status)).toEqual([])
  }
  expect(about(INDEX, 'pkg:oci/a', 'not_affected', ['t'])).toEqual([INDEX])
})
