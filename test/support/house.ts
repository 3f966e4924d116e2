import { readFileSync } from 'node:fs'
import { MIRROR_SCHEMA } from '../../src/store/database/schema/mirror.ts'
import { WEBHOOKS_SCHEMA } from '../../src/store/database/schema/webhooks.ts'
import { DOCUMENTS } from './documents.ts'
import type { Import, Source } from './sources.ts'

/** What is counted of the source, of its tests and of the documents. */
interface House {
  readonly sources: readonly Source[]
  /** The imports of own files. */
  readonly own: readonly Import[]
  /** The texts of the tests. */
  readonly tests: readonly string[]
}

/** A row of the table: what is counted, and how many. */
type Row = readonly [what: string, count: number]

/** Counts what tells whether the core can be read alone, and whether there is one of each. */
export function countHouse({ sources, own, tests }: House): Row[] {
  const texts = sources.map(({ text }) => text)
  const inCore = sources.filter(({ path }) => !path.startsWith('features'))
  const files = (pattern: RegExp, folder = ''): number =>
    sources.filter(({ path, text }) => path.startsWith(folder) && pattern.test(text)).length
  const judging = sources.filter(({ text }) => /\bproblem\(\s*'\w+', '(?:failed|warning)'/.test(text))
  return [
    ['core imports of features', own.filter(isOfFeature).length],
    ['code lines of the core', linesOf(inCore)],
    ['code lines', linesOf(sources)],
    ['kinds of protocols between threads', files(/^export function (?:answer|produce)\w+[<(]/m, 'base/threads/')],
    ['readers of SBOMs', files(/^export function readSboms\(/m)],
    ['readers of VEX and CSAF', files(/^export function readVexDocuments\(/m)],
    ['models of an answer for people', files(/^export interface Answer\b/m)],
    [
      'printers of it',
      files(/from '\.\/answer\.ts'/, 'features/lookup/answers/') -
        files(/^export interface Cell\b/m, 'features/lookup/answers/'),
    ],
    [
      'folders that judge what is wrong with the mirror',
      new Set(judging.map(({ path }) => path.replace(/[^/]*$/, ''))).size,
    ],
    ['descriptions of the status', files(/^export const STATUS = object\(/m)],
    ['steps of the schema of mirror.db', MIRROR_SCHEMA.steps.length],
    ['steps of the schema of webhooks.db', WEBHOOKS_SCHEMA.steps.length],
    ['lines that prettier skips, source', matches(texts, IGNORED)],
    ['lines that prettier skips, tests', matches(tests, IGNORED)],
    ['tests that are skipped without a reason', matches(tests, /\bskip\(\)/g)],
    ['tuple declarations', matches(texts, TUPLE)],
    ['groups of spread objects', matches(texts, /\.\.\.\{/g)],
    ['source files', sources.length],
    ['words of the documents', DOCUMENTS.reduce((sum, page) => sum + wordsOf(page), 0)],
  ]
}

/** Names and as many values; one name of a list, or of what a call returns, is none. */
const TUPLE = /^\s*(?:const|let) \[[^\]\n]*,[^\]\n]*\] = \[(?!\.\.\.|.*\.map\()[^\n]*\]$/gm

const IGNORED = new RegExp(['prettier', 'ignore'].join('-'), 'g')

function isOfFeature({ from, to }: Import): boolean {
  return to.startsWith('features/') && !from.startsWith('features')
}

/** Counts lines with code. */
function linesOf(sources: readonly Source[]): number {
  const code = sources.flatMap(({ text }) => text.replace(/\/\*[\s\S]*?\*\//g, '').split('\n'))
  return code.filter((line) => !/^\s*(?:\/\/|$)/.test(line)).length
}

function matches(texts: readonly string[], pattern: RegExp): number {
  return texts.reduce((sum, text) => sum + [...text.matchAll(pattern)].length, 0)
}

function wordsOf(page: string): number {
  return readFileSync(page, 'utf8').split(/\s+/).filter(Boolean).length
}
