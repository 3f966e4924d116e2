import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import AdmZip from 'adm-zip'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findEcosystem } from '../../src/base/versions/ecosystems.ts'
import { closeAll, serve } from '../server/served.ts'
import { run } from '../support/command.ts'
import { openFilledStore } from '../support/filled-store.ts'
import { buildScanner, scanFiles } from './scanner.ts'
import type { Built } from './toolbox.ts'

/*
 * The query API and osv-scanner judge the same real records: what one finds, the other finds. Left out is what osv-scanner
 * is known to do otherwise: it looks at no range behind one of commits, writes Go's modules in lower case, and has an order
 * for versions from before PEP 440.
 */

const REAL = '../shared/data/osv-real.zip'
const VERSION = 'v2.4.0'
const TYPES: Record<string, string> = {
  PyPI: 'pypi',
  npm: 'npm',
  'crates.io': 'cargo',
  Go: 'golang',
}
/** Packages that are asked for; more of them make one scan longer, not better. */
const MOST = 1500

interface Real {
  id: string
  affected?: {
    package?: { ecosystem: string; name: string }
    versions?: string[]
    ranges?: { type: string; events: Record<string, string>[] }[]
  }[]
}

describe.skipIf(!existsSync(REAL))('the query API', () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-agreement-'))
  const texts = new Map<string, string>()
  let scanner: Built

  beforeAll(async () => {
    for (const entry of new AdmZip(REAL).getEntries()) {
      const text = entry.getData().toString()
      if (isPlain(JSON.parse(text) as Real)) texts.set(entry.entryName.replace(/\.json$/, ''), text)
    }
    const store = openFilledStore(dir)
    store.publishOsv(Object.fromEntries(texts))
    store.close()
    const env = { PATCHMIRROR_DATA_DIR: dir }
    const { code, err } = await run(['export-db', 'osv-scanner', join(dir, 'db')], env, dir)
    expect([code, err]).toEqual([0, ''])
    scanner = await buildScanner(VERSION)
  })

  afterAll(async () => {
    await closeAll()
    rmSync(dir, { recursive: true, force: true })
  })

  test(`agrees with osv-scanner ${VERSION} on real records`, async (context) => {
    if ('missing' in scanner) return context.skip(`osv-scanner ${VERSION}: ${scanner.missing}`)
    const purls = purlsOf([...texts.values()].map((text) => JSON.parse(text) as Real))
    const theirs = await scan(scanner.path, purls)
    const ours = await query(purls)
    const differ = purls.filter((purl) => (theirs.get(purl) ?? '') !== (ours.get(purl) ?? ''))
    const shown = differ.map((purl) => [purl, ours.get(purl) ?? '', theirs.get(purl) ?? ''])
    expect(shown.slice(0, 20)).toEqual([])
    expect(theirs.size).toBeGreaterThan(500)
  })

  /** Versions around each edge of what the records say, as package URLs. */
  function purlsOf(records: readonly Real[]): string[] {
    const purls = new Set<string>()
    for (const { affected = [] } of records)
      for (const { package: named, versions = [], ranges = [] } of affected) {
        const type = TYPES[named?.ecosystem ?? '']
        if (named === undefined || type === undefined || /^(stdlib|toolchain)$/.test(named.name)) continue
        const edges = ranges
          .filter((range) => range.type !== 'GIT')
          .flatMap(({ events }) => events.flatMap((event) => Object.values(event)))
        const chosen = [...edges.filter((text) => text !== '0'), ...versions.slice(0, 1), ...versions.slice(-1)]
        for (const version of chosen)
          purls.add(`pkg:${type}/${named.name.replace('@', '%40')}@${encodeURIComponent(version)}`)
      }
    const all = [...purls].filter((purl) => !/^pkg:golang.*[A-Z]/.test(purl.split('@')[0] ?? ''))
    const step = Math.max(1, Math.floor(all.length / MOST))
    return all.filter((_, i) => i % step === 0)
  }

  async function scan(path: string, purls: readonly string[]): Promise<Map<string, string>> {
    const components = purls.map((purl, i) => {
      const [, name = '', version = ''] = /^pkg:[^/]+\/(.+)@([^@]+)$/.exec(purl) ?? []
      const plain = decodeURIComponent(name)
      const text = decodeURIComponent(version)
      return { 'bom-ref': String(i), type: 'library', name: plain, version: text, purl }
    })
    const bom = { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, components }
    writeFileSync(join(dir, 'bom.cdx.json'), JSON.stringify(bom))
    const { packages } = await scanFiles(path, join(dir, 'db'), [join(dir, 'bom.cdx.json')])
    const found = new Map<string, string>()
    for (const { name: named, version, ecosystem, ids } of packages) {
      const type = TYPES[ecosystem] ?? ''
      const purl = `pkg:${type}/${named.replace('@', '%40')}@${encodeURIComponent(version)}`
      found.set(purl, ids.join(' '))
    }
    return found
  }

  /** By one batch after the other; what has more pages is asked for again. */
  async function query(purls: readonly string[]): Promise<Map<string, string>> {
    const { port } = await serve(() => undefined, { dir })
    const found = new Map<string, { id: string }[]>()
    let open = purls.map((purl) => ({ package: { purl }, page_token: '' }))
    while (open.length > 0) {
      const queries = open.splice(0, 1000)
      const response = await fetch(`http://127.0.0.1:${port}/osv/v1/querybatch`, {
        method: 'POST',
        body: JSON.stringify({ queries }),
      })
      const { results } = (await response.json()) as {
        results: { vulns?: { id: string }[]; next_page_token?: string }[]
      }
      for (const [i, { package: named }] of queries.entries()) {
        const { vulns = [], next_page_token: page_token } = results[i] ?? {}
        found.set(named.purl, [...(found.get(named.purl) ?? []), ...vulns])
        if (page_token !== undefined) open = [...open, { package: named, page_token }]
      }
    }
    return new Map([...found].map(([purl, vulns]) => [purl, idsOf(vulns)]))
  }
})

function isPlain({ affected = [] }: Real): boolean {
  return affected.every(({ package: named, ranges = [] }) => {
    const order = findEcosystem(named?.ecosystem ?? '')?.order ?? null
    const isRead = (text: string): boolean => order === null || order.read(text) !== null
    return ranges.every(
      ({ type, events }) => type !== 'GIT' && events.every((event) => Object.values(event).every(isRead)),
    )
  })
}

function idsOf(vulnerabilities: readonly { id: string }[]): string {
  return vulnerabilities
    .map(({ id }) => id)
    .sort()
    .join(' ')
}
