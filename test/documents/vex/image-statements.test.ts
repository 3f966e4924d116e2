import { expect, test } from 'vitest'
import { countingStatements, statementsAbout } from '../../../src/documents/vex/image-statements.ts'
import { readStatements } from '../../../src/documents/vex/statements.ts'

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
