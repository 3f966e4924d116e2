import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { generatedPages } from './support/doc-pages.ts'

const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join('docs', path))
    .sort(),
]

/** A page's text without its code blocks, which have neither links nor headings. */
const prose = (path: string): string =>
  readFileSync(path, 'utf8').replace(/^ *```[\s\S]*?^ *```/gm, '')

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
  const links = PAGES.flatMap(linksOf)
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
  expect(PAGES.filter((page) => !reached.has(page))).toEqual([])
})

test('every file of src and test that the documents name exists', () => {
  const named = PAGES.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/`((?:[\w-]+\/)+[\w.-]+\.ts)`/g)].map(
      ([, path = '']) => ({ page, path }),
    ),
  )
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter(({ path }) => !existsSync(path) && !existsSync(join('src', path)))).toEqual(
    [],
  )
})

test('each recipe of docs/architecture.md names at most five places of src, and only files and folders that exist', () => {
  const page = readFileSync('docs/architecture.md', 'utf8')
  const recipes = page
    .slice(page.indexOf('## How to add'))
    .split(/^- (?=\*\*)/m)
    .slice(1)
  expect(recipes.length).toBe(6)
  for (const recipe of recipes) {
    const spans = [...recipe.matchAll(/`([\w-]+(?:\/[\w.-]+)+)`/g)].map(([, path = '']) => path)
    expect(recipe).not.toMatch(/`[\w.-]+\.ts`/) // a bare name, which could not be found
    expect(spans.filter((path) => !existsSync(path) && !existsSync(join('src', path)))).toEqual([])
    const places = new Set(spans.filter((path) => existsSync(join('src', path))))
    expect(places.size, recipe).toBeGreaterThan(0)
    expect(places.size, recipe).toBeLessThanOrEqual(5)
  }
})

/** Each room and what it may import, sorted: `core, json` as text. */
function roomsOf(text: string, entry: RegExp, list: RegExp): Record<string, string[]> {
  return Object.fromEntries(
    [...text.matchAll(entry)].map(([, room = '', allowed = '']) => [
      room,
      [...allowed.matchAll(list)].map(([, one = '']) => one).sort(),
    ]),
  )
}

test('the table of rooms in docs/architecture.md is the one that test/architecture.test.ts checks', () => {
  const rules = readFileSync('test/architecture.test.ts', 'utf8')
  const table = /MAY_IMPORT[^=]*= \{\n([\s\S]*?)\n\}/.exec(rules)?.[1] ?? ''
  const checked = roomsOf(table, /^ {2}(\w+): \[([^\]]*)\]/gm, /'([^']+)'/g)
  expect(Object.keys(checked).length).toBeGreaterThan(15)
  const page = readFileSync('docs/architecture.md', 'utf8').replaceAll(/\| nothing +\|/g, '| |')
  const shown = roomsOf(page, /^\| `(\w+)` *\|[^|]*\|([^|]*)\|$/gm, /([\w./-]+)/g)
  expect(shown).toEqual(checked)
})

test('the generated pages show the settings, commands, error codes and metrics of this program', async () => {
  for (const { path, text } of await generatedPages())
    await expect(text).toMatchFileSnapshot(join('..', path))
})
