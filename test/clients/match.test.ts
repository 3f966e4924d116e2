import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import AdmZip from 'adm-zip'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MirrorError } from '../../src/base/errors.ts'
import { documentsIn, envelopesOf } from '../../src/documents/envelopes.ts'
import { readInputSbom } from '../../src/documents/sboms/read.ts'
import { SBOM_OPENING } from '../../src/documents/sboms/sbom.ts'
import type { MatchResult } from '../../src/features/match/result.ts'
import { run } from '../support/command.ts'
import { openFilledStore } from '../support/filled-store.ts'
import { type Agreement, type RealRecord, compareWithScanner, edgesOf, rowOf } from './match-compared.ts'
import { buildScanner, scanFiles } from './scanner.ts'

/*
 * `patchmirror match` and osv-scanner, offline, judge the same SBOMs by the same real records. Each difference belongs to a
 * class of `match-compared.ts`; match-figures.md has the figures of the newest version, which are compared here.
 */

const SBOMS = resolve('../shared/data/sboms')
const RECORDS = ['osv-real.zip', 'series/t2.zip'].map((name) => resolve('../shared/data', name))
const VERSIONS = ['v2.4.0', 'v2.5.1'] // the two generations of its local database
const WITH_FIGURES = 'v2.5.1'

const dir = mkdtempSync(join(tmpdir(), 'patchmirror-match-'))
const env = { PATCHMIRROR_DATA_DIR: dir }
const records = new Map<string, RealRecord>()
const documents: Document[] = []

/** An SBOM that both judge. */
interface Document {
  readonly name: string
  readonly file: string
  readonly ours: MatchResult
}

describe.skipIf(![SBOMS, ...RECORDS].every((path) => existsSync(path)))('match', () => {
  beforeAll(async () => {
    const contents = RECORDS.flatMap((archive) => new AdmZip(archive).getEntries()).map((entry) => entry.getData())
    const named = contents.map((content) => {
      const record = JSON.parse(content.toString()) as RealRecord
      records.set(record.id, record)
      return [record.id, content] as const
    })
    const store = openFilledStore(dir)
    store.publishOsv(Object.fromEntries(named))
    store.close()
    const { code, err } = await run(['export-db', 'osv-scanner', join(dir, 'db')], env, dir)
    expect([code, err]).toEqual([0, ''])
    for (const name of readdirSync(SBOMS).sort()) await writeReal(name)
    for (const [ecosystem, sbom] of edgesOf([...records.values()])) await write(`versions of ${ecosystem}`, sbom, 'cdx')
    expect(documents.length).toBeGreaterThan(20)
  })

  afterAll(() => rmSync(dir, { recursive: true, force: true }))

  test.for(VERSIONS)(
    'agrees with osv-scanner %s on what both judge, but for named reasons',
    async (version, context) => {
      const scanner = await buildScanner(version)
      if ('missing' in scanner) return context.skip(`osv-scanner ${version}: ${scanner.missing}`)
      const compared: Agreement[] = []
      for (const one of documents) compared.push(await compare(scanner.path, one))
      expect(compared.flatMap(({ unexplained }) => unexplained)).toEqual([])
      const sum = (of: (one: Agreement) => number) => compared.reduce((all, one) => all + of(one), 0)
      expect(sum(({ same }) => same)).toBeGreaterThan(4000)
      expect(sum(({ known }) => known)).toBeGreaterThan(2000)
      if (version !== WITH_FIGURES) return
      const figures = compared.map(rowOf)
      const page = readFileSync('test/clients/match-figures.md', 'utf8')
      const rows = [...page.matchAll(/^\|(.*)\|$/gm)].map(([, row = '']) => row.split('|').map((cell) => cell.trim()))
      expect(rows.filter(([name]) => figures.some(([own]) => own === name))).toEqual(figures)
      expect(page).toContain(`osv-scanner ${version.slice(1)}`)
    },
  )
})

async function compare(path: string, { name, file, ours }: Document): Promise<Agreement> {
  const theirs = await scanFiles(path, join(dir, 'db'), [file], ['--all-packages'])
  const sbom = readInputSbom(readFileSync(file))
  return compareWithScanner({ name, sbom, ours, theirs, records })
}

/** osv-scanner opens no envelopes, so what is in them is written for both; what is no SBOM here is left out. */
async function writeReal(name: string): Promise<void> {
  try {
    const bytes = readFileSync(join(SBOMS, name))
    readInputSbom(bytes)
    const [first = {}] = documentsIn(bytes, SBOM_OPENING).documents
    const [innermost] = [...envelopesOf(first, SBOM_OPENING)].reverse()
    await write(name, innermost ?? {}, name.includes('spdx') ? 'spdx' : 'cdx')
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
  }
}

async function write(name: string, sbom: object, format: string): Promise<void> {
  const file = join(dir, `${documents.length}.${format}.json`)
  writeFileSync(file, JSON.stringify(sbom))
  const { code, out } = await run(['match', file, '--json'], env, dir)
  expect([name, code]).toEqual([name, 0])
  documents.push({ name, file, ours: JSON.parse(out) as MatchResult })
}
