import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { longTest, test } from './support/tables.ts'

/**
 * Words that once stood for something else in this project, with the word to use (docs/reference/glossary.md). Names of
 * columns, rows and JSON members that have one keep it: a quoted name is not looked at.
 */
const BANNED: Readonly<Record<string, string>> = {
  anew: 'again',
  whoever: 'client, caller, operator',
  nobody: 'client, caller, operator',
  held: 'stored',
  lacking: 'missing',
  told: 'reported, logged, returned, passed',
  wish: 'request header, requested value',
  moment: 'snapshot',
  company: 'batch size',
  odd: 'malformed',
  mend: 'fix, repair',
}
/** Names of members and columns that are sent or stored, and the files that know them. */
const ALLOWED: Readonly<Record<string, RegExp>> = {
  // `odd` of the views' status and of views.db: records with an invalid ecosystem or package name
  odd: /^src\/(base\/reports\/scanners|cli\/mirror\/status|store\/database\/schema\/views|features\/scanners\/(store|views)\/)/,
  // `held` of what import and `webhooks list` print as JSON
  held: /^src\/features\/(bundles\/(import\/(apply|types)|cli\/import|boxes\/receipts)|account\/webhooks\/subscriptions)\.ts$/,
}
/** File names that say nothing of what is in the file. */
const BANNED_FILES = /^(utils?|helpers?|common|misc|stuff|things|manager|service-utils)\.ts$/

const SOURCES = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
const DOCUMENTS = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md') && path !== join('reference', 'glossary.md'))
    .map((path) => join('docs', path)),
]

const WORDS = new RegExp(`\\b(${Object.keys(BANNED).join('|')})\\b`, 'gi')

/** Places where a text has a banned word, without quoted names. */
function placesIn(path: string): string[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line, i) =>
      [...line.replace(/'[\w-]*'|`[\w-]*`/g, "''").matchAll(WORDS)]
        .filter(([word]) => ALLOWED[word]?.test(path) !== true)
        .map(([word]) => `${path}:${i + 1}: ${word}, use: ${BANNED[word.toLowerCase()] ?? ''}`),
    )
}

longTest('code and documents use the words of the glossary', () => {
  const paths = [...SOURCES.map((path) => join('src', path)), ...DOCUMENTS]
  expect(paths.flatMap(placesIn)).toEqual([])
})

test('no file has a name that does not describe its content', () => {
  const names = SOURCES.map((path) => path.split('/').at(-1) ?? '')
  expect(names.filter((name) => BANNED_FILES.test(name))).toEqual([])
})
