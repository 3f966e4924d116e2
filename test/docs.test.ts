import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import type { Command } from 'commander'
import { parse } from 'yaml'
import { expect, test } from 'vitest'
import { createProgram } from '../src/cli/program.ts'
import { verbsOf } from '../src/cli/verbs.ts'
import { SYNONYMS } from '../src/cli/verbs/synonyms.ts'
import { isGroup } from '../src/cli/verbs/verb.ts'
import { SECTIONS, SETTINGS } from '../src/config/settings.ts'
import { generatedPages } from './support/doc-pages.ts'
import { DOCUMENTS } from './support/documents.ts'
import { GUIDES, guideBlocks } from './support/guides/guide.ts'
import { FEATURES } from '../src/features.ts'

const VERBS = verbsOf(FEATURES)

/** A page's text without its code blocks, which have neither links nor headings. */
const prose = (path: string): string => readFileSync(path, 'utf8').replace(/^ *```[\s\S]*?^ *```/gm, '')

/** The names that GitHub gives the headings of a page: `## Local keys` is `local-keys`. */
function anchorsOf(path: string): Set<string> {
  const headings = [...prose(path).matchAll(/^#{1,6} (.*)$/gm)].map(([, text = '']) => text)
  const slug = (text: string): string =>
    text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-')
  return new Set(headings.map(slug))
}

interface Link {
  readonly page: string
  readonly to: string
}

function linksOf(page: string): Link[] {
  const text = prose(page).replace(/`[^`]*`/g, '')
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, to = '']) => ({ page, to }))
    .filter(({ to }) => !/^[a-z]+:/.test(to))
}

function isBroken({ page, to }: Link): boolean {
  const [file = '', anchor] = to.split('#')
  const target = file === '' ? page : normalize(join(dirname(page), file))
  if (!existsSync(target)) return true
  if (anchor === undefined) return false
  return !statSync(target).isFile() || !anchorsOf(target).has(anchor)
}

test('every relative link of README and docs leads to a file and a heading that exist', () => {
  const links = DOCUMENTS.flatMap(linksOf)
  expect(links.length).toBeGreaterThan(40)
  expect(links.filter(isBroken)).toEqual([])
  const broken = { page: 'README.md', to: 'docs/guides/webhooks.md#no-such-heading' }
  expect(isBroken(broken)).toBe(true)
})

test('every page of docs can be reached from README', () => {
  const reached = new Set(['README.md'])
  for (const page of reached)
    for (const { to } of linksOf(page)) {
      const [file = ''] = to.split('#')
      const target = normalize(join(dirname(page), file))
      if (file !== '' && target.endsWith('.md') && existsSync(target)) reached.add(target)
    }
  expect(DOCUMENTS.filter((page) => !reached.has(page))).toEqual([])
})

test('every file of src and test that the documents name exists', () => {
  const named = DOCUMENTS.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/`((?:[\w-]+\/)+[\w.-]+\.ts)`/g)].map(([, path = '']) => ({ page, path })),
  )
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter(({ path }) => !existsSync(path) && !existsSync(join('src', path)))).toEqual([])
})

test('docs/architecture.md has at most 200 lines', () => {
  expect(readFileSync('docs/architecture.md', 'utf8').split('\n').length - 1).toBeLessThanOrEqual(200)
})

test('each recipe of docs/architecture.md names at most five places of src, and only files and folders that exist', () => {
  const page = readFileSync('docs/architecture.md', 'utf8')
  const recipes = page
    .slice(page.indexOf('## How to add'))
    .split(/^- (?=\*\*)/m)
    .slice(1)
  expect(recipes.length).toBe(8)
  for (const recipe of recipes) {
    const spans = [...recipe.matchAll(/`([\w-]+(?:\/[\w.-]+)+)`/g)].map(([, path = '']) => path)
    expect(recipe).not.toMatch(/`[\w.-]+\.ts`/) // a bare name, which could not be found
    expect(spans.filter((path) => !existsSync(path) && !existsSync(join('src', path)))).toEqual([])
    const places = new Set(spans.filter((path) => existsSync(join('src', path))))
    expect(places.size, recipe).toBeGreaterThan(0)
    expect(places.size, recipe).toBeLessThanOrEqual(5)
  }
})

/** Tests that run the marked blocks of pages that are no guides. */
const RUN_BY: Readonly<Record<string, string>> = {
  'docs/bundle-format.md': 'test/features/bundles/format/format-doc.test.ts',
  'docs/guides/guard.md': 'test/guard/guide.test.ts',
}
/** Pages whose blocks are not run as a guide yet: each says of every block why. The list only gets shorter. */
const NOT_GUIDES = new Set(['README.md', 'docs/guides/systemd.md', ...Object.keys(RUN_BY)])
/** Blocks of all pages that cannot be run here, such as those for Docker: at most so many. */
const MOST_NOT_RUN = 6

test('each shell block of a guide is run by test/long/guides.test.ts, but for a few that say why not', () => {
  const guides = new Set(GUIDES.map(({ page }) => page))
  const pages = new Set(DOCUMENTS.flatMap(shellBlocks).map(({ page }) => page))
  expect(new Set([...guides, ...NOT_GUIDES])).toEqual(pages)
  expect([...guides].filter((page) => NOT_GUIDES.has(page))).toEqual([])
  const reasons = DOCUMENTS.flatMap((page) => guideBlocks(page).flatMap(({ notRun }) => notRun ?? []))
  expect(reasons.length).toBeLessThanOrEqual(MOST_NOT_RUN)
  expect(reasons.filter((reason) => reason.length < 6)).toEqual([])
  const comments = DOCUMENTS.flatMap((page) => [...readFileSync(page, 'utf8').matchAll(/<!-- ([a-z ]+): /g)])
  expect(new Set(comments.map(([, word]) => word))).toEqual(new Set(['not run', 'on', 'before', 'needs']))
})

test('README begins with two commands, and .ci/run runs them', () => {
  const blocks = shellBlocks('README.md')
  expect(blocks.map(({ script }) => script)).toEqual(['npm ci && npm run demo -- --once\nnpm ci && npm test\n'])
  const ci = readFileSync('.ci/run', 'utf8')
  for (const command of ['npm ci', 'npm run demo -- --once', 'npm test']) expect(ci).toContain(`{ ${command}; }`)
})

test('each shell block of another page is run by a test, or its marker says why it is not', () => {
  const pages = DOCUMENTS.filter((page) => NOT_GUIDES.has(page) && page !== 'README.md')
  const blocks = pages.flatMap(shellBlocks)
  const unmarked = blocks.filter(({ marker }) => !/^(?:a test runs this block|not run: \S.{5,})$/.test(marker))
  expect(unmarked).toEqual([])
  const run = blocks.filter(({ marker }) => marker.startsWith('a test'))
  for (const { page } of run) {
    const text = readFileSync(RUN_BY[page] ?? '', 'utf8')
    expect(text).toContain(`'${page}'`)
    expect(text).toContain('a test runs this block')
  }
  expect(new Set(run.map(({ page }) => page))).toEqual(new Set(Object.keys(RUN_BY)))
})

interface ShellBlock {
  readonly page: string
  /** Text of the comment before the block; empty when there is none. */
  readonly marker: string
  readonly script: string
}

function shellBlocks(page: string): ShellBlock[] {
  const text = readFileSync(page, 'utf8')
  return [...text.matchAll(/^ *```(?:sh|bash|shell|console)\n([\s\S]*?)^ *```/gm)].map(({ index, 1: script = '' }) => {
    const marker = /<!-- ([^>]*) -->\s*$/.exec(text.slice(0, index))?.[1] ?? ''
    return { page, marker, script }
  })
}

test('every patchmirror command of a shell block exists, with its options', () => {
  const program = createProgram(FEATURES)
  const lines = DOCUMENTS.flatMap(shellBlocks).flatMap(({ page, script }) =>
    script
      .replaceAll('\\\n', ' ')
      .split('\n')
      .map((line) => line.replace(/(?:^|\s)#.*$/, '').replace(/^(?:\s*[A-Z_]+=\S+)*\s+/, ''))
      .map((line) => line.replace(/^until /, '').replace(/ *(?:[|&<;]| 2?>).*$/, ''))
      .flatMap((line) => /^(?:npm run (?:-s )?)?patchmirror (?:-- )?([a-z].*)$/.exec(line)?.[1] ?? [])
      .map((line) => ({ page, line })),
  )
  expect(lines.length).toBeGreaterThan(60)
  expect(lines.filter(({ line }) => !isCommand(program, line))).toEqual([])
  expect(isCommand(program, 'webhooks list | tset ID')).toBe(false)
  expect(isCommand(program, 'serve --ofline')).toBe(false)
})

test('every command that a page names in its text exists, with its options', () => {
  const program = createProgram(FEATURES)
  const spans = DOCUMENTS.flatMap((page) =>
    [...prose(page).matchAll(/`(?:[A-Z_]+=\S+ )*patchmirror ([a-z][^`]*)`/g)].map(([, line = '']) => ({
      page,
      line: line.replaceAll(/\s+/g, ' '),
    })),
  )
  expect(spans.length).toBeGreaterThan(100)
  expect(spans.filter(({ line }) => !isCommand(program, line))).toEqual([])
})

test('no document, message, alert or file of a deployment tells to run a command under another name', () => {
  const files = ['src', 'docs', 'deploy', 'config'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  )
  const texts = ['README.md', 'CONTRIBUTING.md', 'Dockerfile', ...files].filter((path) => statSync(path).isFile())
  const names = Object.keys(SYNONYMS)
  const others = new RegExp(`patchmirror (?:-- )?(?:${names.join('|')})(?![\\w\\\\-])`, 'g') // the manual page has export\-db
  const found = texts.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(others)].map(([text]) => `${path}: ${text}`),
  )
  expect(found).toEqual([])
  expect('run "patchmirror verify --repair"').toMatch(others)
  expect('run "patchmirror export-db"').not.toMatch(others)
})

test('every setting that a page names is there', () => {
  const keys = new Set(SETTINGS.map(({ key }) => key))
  const variables = new Set(SETTINGS.map(({ env }) => env))
  const named = DOCUMENTS.filter((page) => page !== 'CHANGELOG.md').flatMap((page) => {
    const text = readFileSync(page, 'utf8')
    const spans = [...text.matchAll(/`([a-z]+\.[a-z]\w*)(?=[`:])/g)].map(([, key = '']) => key)
    const blocks = [...text.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) => keysOf(parse(block)))
    const environment = [...text.matchAll(/\bPATCHMIRROR_[A-Z_]+/g)].map(([name]) => name.replace(/_FILE$/, ''))
    return [...spans, ...blocks, ...environment].map((name) => ({ page, name }))
  })
  const isFound = (name: string): boolean => keys.has(name) || variables.has(name)
  expect(named.filter(({ name }) => isFound(name)).length).toBeGreaterThan(150)
  const sections = new Set(SECTIONS)
  const unknown = named.filter(({ name }) => sections.has(name.split('.')[0] ?? '') && !isFound(name))
  expect(unknown.filter(({ name }) => !NO_SETTINGS.has(name))).toEqual([])
})

/** Databases with the name of a section. */
const NO_SETTINGS: ReadonlySet<string> = new Set(['views.db', 'webhooks.db'])

/** The settings of a file of settings: `section.name`. */
function keysOf(file: unknown): string[] {
  const sections = Object.entries(file as Record<string, object>)
  return sections.flatMap(([section, values]) => Object.keys(values).map((name) => `${section}.${name}`))
}

/** Reports whether a line names a command and only options of it; `a x | y` names `a x` and `a y`. */
function isCommand(program: Command, line: string): boolean {
  const [first = '', ...others] = line.split(' | ')
  const path: Command[] = [program]
  for (const word of first.split(' ')) {
    const next = path.at(-1)?.commands.find((one) => one.name() === word)
    if (next === undefined) break
    path.push(next)
  }
  const command = path.at(-1)
  const names = path.slice(1).map((one) => one.name())
  const verb = VERBS.find((one) => one.path === names.join(' '))
  if (command === undefined || verb === undefined || isGroup(verb)) return false
  const known = [...command.options, ...program.options].map(({ long }) => long)
  const areOptions = [...line.matchAll(/(?<=\s)--[\w-]+/g)].every(
    ([option]) => others.length > 0 || known.includes(option),
  )
  const siblings = path.at(-2)?.commands.map((one) => one.name()) ?? []
  const areVerbs = others.every((one) => one.startsWith('--') || siblings.includes(one.split(' ')[0] ?? ''))
  return areOptions && areVerbs
}

/** Each room and what it may import, sorted: `core, json` as text. */
function roomsOf(text: string, entry: RegExp, list: RegExp): Record<string, string[]> {
  return Object.fromEntries(
    [...text.matchAll(entry)].map(([, room = '', allowed = '']) => [
      room,
      [...allowed.matchAll(list)].map(([, one = '']) => one).sort(),
    ]),
  )
}

test('the tables of folders in docs/architecture.md are those that test/architecture.test.ts checks', () => {
  const rules = readFileSync('test/architecture.test.ts', 'utf8')
  const table = /MAY_IMPORT[^=]*= \{\n([\s\S]*?)\n\}/.exec(rules)?.[1] ?? ''
  const checked = roomsOf(table, /^ {2}(\w+): \[([^\]]*)\]/gm, /'([^']+)'/g)
  expect(Object.keys(checked).length).toBeGreaterThan(10)
  const page = readFileSync('docs/architecture.md', 'utf8').replaceAll(/\| nothing +\|/g, '| |')
  const shown = roomsOf(page, /^\| `(\w+)` *\|[^|]*\|([^|]*)\|$/gm, /([\w./-]+)/g)
  expect(shown).toEqual(checked)
  const features = FEATURES.map(({ name, needs = [] }) => [name, [...needs].sort()])
  const section = /## Features([\s\S]*?)\n## /.exec(page)?.[1] ?? ''
  const listed = [...section.matchAll(/^\| (\w+) *\| [^|]*\| ([\w, ]*)\|$/gm)].map(([, name = '', needs = '']) => {
    return [name, needs.match(/\w+/g) ?? []]
  })
  expect(listed.filter(([name]) => name !== 'feature')).toEqual(features)
})

test('the way of a record in docs/architecture.md names files that are there, and at most 15', () => {
  const page = readFileSync('docs/architecture.md', 'utf8')
  const section = /## The way of a record([\s\S]*?)\n## /.exec(page)?.[1] ?? ''
  const files = [...section.matchAll(/`([\w/-]+\.ts)`/g)].map(([, file = '']) => join('src', file))
  expect(files.length).toBeGreaterThan(10)
  expect(files.length).toBeLessThanOrEqual(15)
  expect(files.filter((file) => !existsSync(file))).toEqual([])
})

test('the generated pages show the settings, commands, error codes and metrics of this program', async () => {
  for (const { path, text } of await generatedPages()) await expect(text).toMatchFileSnapshot(join('..', path))
})
