import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DOCUMENTS } from './support/documents.ts'

/** Words of all documents together, as `wc -w` counts them: what was reached, rounded up. It only gets smaller. */
const MOST_WORDS = 42_800
/** Words of a sentence. */
const LONGEST = 25

/** Counts words as `wc -w` does. */
function wordsOf(page: string): number {
  return readFileSync(page, 'utf8').split(/\s+/).filter(Boolean).length
}

/** Returns the sentences of a page's prose: without headings, tables and blocks; code and the target of a link are one word. */
function sentencesOf(page: string): string[] {
  const text = readFileSync(page, 'utf8')
    .replaceAll(/^ *```[\s\S]*?^ *```/gm, '')
    .replaceAll(/<!--[\s\S]*?-->/g, '')
    .replaceAll(/^\s*(?:\||#).*$/gm, '')
    .replaceAll(/`[^`]*`/g, 'Code')
    .replaceAll(/\]\([^)]*\)/g, ']')
  const paragraphs = text.split(/\n\s*\n|\n\s*(?:[-*]|\d+\.) /)
  return paragraphs.flatMap((paragraph) => paragraph.split(/(?<=[.!?]["*)_]*)\s+(?=["*([]*[\p{Lu}\d])/u))
}

/** Counts the words of a sentence. */
function lengthOf(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[\p{L}\d]/u.test(word)).length
}

function longSentences(page: string): string[] {
  return sentencesOf(page).filter((sentence) => lengthOf(sentence) > LONGEST)
}

test('the documents together have no more words than they had', () => {
  const pages = DOCUMENTS.map((page) => ({ page, words: wordsOf(page), long: longSentences(page).length }))
  const words = pages.reduce((sum, one) => sum + one.words, 0)
  const worst = pages.toSorted((one, other) => other.words - one.words).slice(0, 10)
  const lines = worst.map((one) => `${one.words} words, ${one.long} long sentences: ${one.page}`)
  process.stdout.write(`${words} words in ${pages.length} documents\n${lines.join('\n')}\n`)
  expect(words).toBeLessThanOrEqual(MOST_WORDS)
})

/** Pages that are written by tests: their texts are those of the program. */
const GENERATED: ReadonlySet<string> = new Set(['docs/cli.md', 'docs/coverage.md'])

test('no sentence of a page has more than 25 words', () => {
  const pages = DOCUMENTS.filter((page) => !GENERATED.has(page))
  expect(pages.flatMap((page) => longSentences(page).map((one) => `${page}: ${one}`))).toEqual([])
})

test('no guide has more than 150 lines', () => {
  const guides = DOCUMENTS.filter((page) => page.startsWith('docs/guides/'))
  const lines = guides.map((page) => ({ page, lines: readFileSync(page, 'utf8').split('\n').length - 1 }))
  expect(lines.filter((one) => one.lines > 150)).toEqual([])
})
