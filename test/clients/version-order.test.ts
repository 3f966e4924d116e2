import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { findEcosystem } from '../../src/base/versions/ecosystems.ts'
import { type Built, fetchGoModule } from './toolbox.ts'

/*
 * The orders of versions against the tables that osv-scalibr tests its own with (70,000 pairs, most of them made by each
 * ecosystem's own tool). They are read from the module; none of them is copied here.
 */

const VERSION = 'v0.5.3'
/** Ecosystem, table, and pairs that are told otherwise here, with the reason. */
const TABLES: [ecosystem: string, tables: string[], otherwise: RegExp][] = [
  ['Debian', ['debian-versions', 'debian-versions-generated'], /^$/],
  ['Alpine', ['alpine-versions', 'alpine-versions-generated'], /^$/],
  // The table is older than Maven 3.9, and maven-artifact 3.9.9 orders these otherwise.
  [
    'Maven',
    ['maven-versions', 'maven-versions-generated'],
    /noneautotype$| (1-ga-1|1\.0\.0\.RC8-beta|1\.0\.0\.RC7-3|2\.9\.0\.RC1|6\.1\.12rc1|1\.0\.beta8|1\.5\.9-RC0|1\.1\.0\.Beta1)$/,
  ],
  ['PyPI', ['pypi-versions', 'pypi-versions-generated'], /^$/],
  ['RubyGems', ['rubygems-versions', 'rubygems-versions-generated'], /^$/],
  // `#` is what PHP uses inside itself; no version is written with it. The others are not normalised as composer does it.
  [
    'Packagist',
    ['packagist-versions', 'packagist-versions-generated'],
    /#|^1\.0\.0 > 1\.0$|^v[346](\.\d)? < |^v4-beta4 |^v1\.9\.0-(ALPHA|BETA)|^5\.1\.0-stable /,
  ],
  ['NuGet', ['nuget-versions'], /^$/],
  ['npm', ['semver-versions'], /^$/],
  ['Pub', ['pub-versions'], /^$/],
  ['Red Hat', ['redhat-versions'], /^$/],
  ['CRAN', ['cran-versions', 'cran-versions-generated'], /^$/],
  ['Hackage', ['hackage-versions'], /^$/],
]

let module: Built
beforeAll(async () => {
  module = await fetchGoModule('github.com/google/osv-scalibr', VERSION)
})

function signOf(difference: number): string {
  if (difference < 0) return '<'
  return difference > 0 ? '>' : '='
}

describe("osv-scalibr's tables of versions", () => {
  test.for(TABLES)('agree for %s', ([ecosystem, tables, otherwise], context) => {
    if ('missing' in module) return context.skip(`osv-scalibr ${VERSION}: ${module.missing}`)
    const order = findEcosystem(ecosystem)?.order
    if (!order) throw new Error(`no order for ${ecosystem}`)
    const wrong: string[] = []
    let compared = 0
    let unread = 0
    for (const table of tables) {
      const path = join(module.path, 'semantic/testdata', `${table}.txt`)
      for (const line of readFileSync(path, 'utf8').split('\n')) {
        const [, one, due, other] = /^(\S+) ([<=>]) (\S+)$/.exec(line.trim()) ?? []
        if (one === undefined || other === undefined || otherwise.test(line)) continue
        const a = order.read(one)
        const b = order.read(other)
        if (a === null || b === null) {
          unread++
          continue
        }
        compared++
        const is = signOf(order.compare(a, b))
        if (is !== due) wrong.push(`${line}, not ${is}`)
      }
    }
    expect(wrong).toEqual([])
    expect(compared).toBeGreaterThan(10)
    expect(unread).toBeLessThan(compared / 5 + 5)
  })
})
