import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect } from 'vitest'
import { sha256Hex } from '../../../src/base/digest.ts'
import type { DocumentKind } from '../../../src/base/domain/resources.ts'
import { messageOf } from '../../../src/base/errors.ts'
import { readInputSbom } from '../../../src/documents/sboms/read.ts'
import { readStatements } from '../../../src/documents/vex/statements.ts'
import { createPageMaker } from '../../../src/features/pages/make-page.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { createKindCheck } from '../../../src/sync/catalog/answers/kind-check.ts'
import { load } from '../../config/loading.ts'
import { makeOsvViews } from '../../../src/features/scanners/views/osv/views.ts'
import { lostComponents } from '../../../src/guard/lost-components.ts'
import { openFilledStore } from '../../support/filled-store.ts'
import { commandHost } from '../../support/hosted.ts'
import { longTest, test } from '../../support/tables.ts'
import { PROVENANCES, REPLACED, SBOMS, VEX, type Variants } from './variants.ts'

/** What is made of each document, as files: `npx vitest run test/documents/outputs --update` writes them. */
const NOW = Date.UTC(2026, 6, 1)
const KINDS: Readonly<Record<'sbom' | 'vex' | 'provenance', Variants>> = {
  sbom: SBOMS,
  vex: VEX,
  provenance: PROVENANCES,
}
type Kind = keyof typeof KINDS

const run = commandHost()
const dir = mkdtempSync(join(tmpdir(), 'patchmirror-outputs-'))
let show: (kind: Kind, name: string) => string
let close = (): void => undefined

beforeAll(async () => {
  await storeAll()
  const reads = openShortReads(dir)
  if (reads === null) throw new Error('no database')
  const { config } = load({ env: { PATCHMIRROR_DATA_DIR: dir } })
  const make = createPageMaker({ config, version: 'test', style: 's.css', script: 's.js', icon: 'i.svg' }, () => reads)
  close = () => reads.close()
  show = (kind, name) => {
    const asked = { page: 'avr', query: `id=${kind}-${name}`, signedIn: true, status: null, now: NOW, served: null }
    const shown = make({ ...asked, problem: null, base: '', origin: 'http://localhost' })
    return shortened(Buffer.from(shown.body).toString())
  }
})
afterAll(() => {
  close()
  rmSync(dir, { recursive: true, force: true })
})

/** Stores each document as that of a set of artifacts. */
async function storeAll(): Promise<void> {
  const store = openWrites(dir)
  const paths: string[] = []
  for (const [kind, variants] of Object.entries(KINDS))
    for (const [name, content] of Object.entries(variants)) {
      const sink = store.catalog.openDocument()
      sink.write(Buffer.from(content))
      await sink.pack(true)
      const { digest } = sink.end('application/json', NOW / 1000)
      const id = `${kind}-${name}`
      const path = `/v1/avrs/${id}/artifacts/${kind}`
      const owned = { path, resource: 'avrs', owner: `avrs/${id}`, ownerSha: Buffer.from('x') }
      const body = { status: 200, body: gzipSync('{}'), size: 2, sha256: Buffer.alloc(32), etag: null }
      const links = [{ at: [], digest }]
      store.catalog.keepFetched({ ...owned, ...body, links, mentions: [], confirmedAt: NOW })
      paths.push(path)
    }
  await store.transaction(() => {
    store.catalog.publishPaths(paths, NOW)
    const runId = store.runs.startRun({ source: 'catalog', kind: 'sync', trigger: 'start', startedAt: NOW })
    const about = { source: 'catalog', id: 'aa', runId, publishedAt: NOW, asOf: NOW, records: 1, whole: true } as const
    store.snapshots.replaceSnapshot(about)
    return Promise.resolve({ commit: true })
  })
  store.close()
}

/** Of the artifacts that are not stored beside the document. */
const REASONS = /<section>\s*<h2><bdi>Why they are not stored[^]*?<\/section>\s*/

/** Returns the part of a page that shows the document, its first rows alone, a row on each line, without tags that say nothing. */
function shortened(html: string): string {
  const main = html.slice(html.indexOf('</h1>') + 5, html.indexOf('</main>'))
  const own = main.slice(main.indexOf('</table>') + 8).replace(REASONS, '')
  const rows = own.replaceAll(/<\/?bdi>|<span class="item">|<\/span>|<\/t[dhr]>/g, '').split('<tr>')
  const kept = rows.length > 14 ? [...rows.slice(0, 5), `… ${rows.length - 6} rows`, rows.at(-1) ?? ''] : rows
  const text = kept.join('\n<tr>').replaceAll(/ *\n\s*/g, '\n')
  return text.replaceAll(/[\da-f]{64}/g, (digest) => `${digest.slice(0, 12)}…`).trim()
}

function judged(read: () => string[]): string {
  try {
    const lines = read()
    const all = lines.join('\n')
    return lines.length > 30 ? `${lines.length} lines, ${sha256Hex(all)}` : all
  } catch (error) {
    return messageOf(error)
  }
}

/** Returns what `patchmirror match` reads of an SBOM. */
function judgedSbom(content: Buffer): string[] {
  const { components, ...head } = readInputSbom(content)
  const { format, name, subjects, systems, serial = null, enveloped } = head
  const lines = components.map(({ ref, name: own, version, purl, source, kind }) =>
    JSON.stringify({ ref, name: own, version, purl, source, kind }),
  )
  return [JSON.stringify({ format, name, subjects, systems, serial, enveloped }), ...lines]
}

/** Returns what is judged by a VEX document. */
function judgedVex(content: Buffer): string[] {
  return readStatements(content)?.map((one) => JSON.stringify(one)) ?? ['no VEX document']
}

/** Returns what a sync makes of a document. */
function checked(kind: DocumentKind, content: Buffer): string {
  const check = createKindCheck(kind)
  check.write(content)
  return JSON.stringify(check.end())
}

const JUDGED: Readonly<Record<Kind, ((content: Buffer) => string[]) | null>> = {
  sbom: judgedSbom,
  vex: judgedVex,
  provenance: null,
}

test.each(Object.keys(KINDS) as Kind[])('what a page shows and what is judged of %s stays as it is', async (kind) => {
  const parts = Object.entries(KINDS[kind]).map(([name, content]) => {
    const read = JUDGED[kind]
    const own = read === null ? '' : `--- judged\n${judged(() => read(content))}\n`
    return `=== ${name}\n--- sync\n${checked(kind, content)}\n${own}--- page\n${show(kind, name)}\n`
  })
  await expect(parts.join('\n')).toMatchFileSnapshot(`./${kind}.txt`)
})

test('what an SBOM lost that another one replaces stays as it is', async () => {
  const parts = Object.entries(REPLACED).map(([name, [before, after]]) => {
    const { left, ...found } = lostComponents(readInputSbom(before), readInputSbom(after), null)
    return `=== ${name}\n${JSON.stringify({ ...found, left: [...left] }, null, 1)}\n`
  })
  await expect(parts.join('\n')).toMatchFileSnapshot('./replaced.txt')
})

longTest('what "match" prints of each SBOM stays as it is', async () => {
  const affected = (ecosystem: string, name: string) => ({
    package: { ecosystem, name },
    ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '99' }] }],
  })
  const store = openFilledStore(dir)
  const record = { id: 'T-1', affected: [affected('Maven', 'org.a:core'), affected('npm', 'inner')] }
  store.publishOsv({ 'T-1': JSON.stringify({ ...record, modified: '2026-06-01T00:00:00Z' }) }, NOW)
  store.close()
  await buildViews()
  const parts: string[] = []
  for (const [name, content] of Object.entries(SBOMS)) {
    writeFileSync(join(dir, 'sbom.json'), content)
    const { code, out, err } = await run(['match', 'sbom.json', '--no-vex'], { PATCHMIRROR_DATA_DIR: dir }, dir)
    parts.push(`=== ${name}: ${String(code)}\n${out.replace(/\nosv: [^]*$/, '')}${err}`)
  }
  await expect(parts.join('\n')).toMatchFileSnapshot('./match.txt')
})

async function buildViews(): Promise<void> {
  const reads = openShortReads(dir)
  if (reads === null) throw new Error('no database')
  const pause = () => Promise.resolve()
  await makeOsvViews({ dataDir: dir, reads: reads.reads, vendors: [], pause })
  reads.close()
}
