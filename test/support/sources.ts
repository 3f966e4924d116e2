import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, normalize, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../src', import.meta.url))

/** One import of a source file. */
export interface Import {
  /** The importing file, as `sync/runner.ts`. */
  from: string
  /** The imported file in the same form; for a library its name, for Node's own `node:fs`. */
  to: string
  kind: 'own' | 'library' | 'node'
  /** The statement is erased when the program runs. */
  typeOnly: boolean
  /** Loaded when it is called, or in another thread. */
  later: boolean
}

/** A file of src/, with its text and its imports. */
export interface Source {
  path: string
  text: string
  imports: Import[]
}

/** Reads all of src/. */
export function readSources(): Source[] {
  return readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => path.split(sep).join('/'))
    .sort()
    .map((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8')
      return { path, text, imports: importsOf(path, text) }
    })
}

const STATEMENT = /^(?:import|export)\s+(type\s)?[^'"`;]*?\bfrom\s+'([^']+)'|^import\s+'([^']+)'/gm
const ELSEWHERE = /\bimport\(\s*'([^']+)'\s*\)|new URL\(\s*'(\.[^']+)'\s*,\s*import\.meta\.url\s*\)/g

/** Finds `import … from`, `export … from`, bare and dynamic imports, and files named for a worker. */
export function importsOf(from: string, text: string): Import[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')
  const found: Import[] = []
  for (const [, type, named, bare] of code.matchAll(STATEMENT)) {
    found.push(resolve(from, named ?? bare ?? '', type !== undefined, false))
  }
  for (const [, dynamic, file] of code.matchAll(ELSEWHERE)) {
    const specifier = dynamic ?? file ?? ''
    if (dynamic !== undefined || specifier.endsWith('.ts')) {
      found.push(resolve(from, specifier, false, true))
    }
  }
  return found
}

function resolve(from: string, specifier: string, typeOnly: boolean, later: boolean): Import {
  if (specifier.startsWith('node:')) return { from, to: specifier, kind: 'node', typeOnly, later }
  if (specifier.startsWith('.')) {
    const to = normalize(join(dirname(from), specifier))
      .split(sep)
      .join('/')
    return { from, to, kind: 'own', typeOnly, later }
  }
  const parts = specifier.split('/')
  const to = parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/')
  return { from, to, kind: 'library', typeOnly, later }
}

/** The files of the first cycle there is, in order; null when there is none. */
export function findCycle(imports: readonly Import[]): string[] | null {
  const next = Map.groupBy(imports, ({ from }) => from)
  const done = new Set<string>()
  const walk = (file: string, path: readonly string[]): string[] | null => {
    const seen = path.indexOf(file)
    if (seen >= 0) return [...path.slice(seen), file]
    if (done.has(file)) return null
    for (const { to } of next.get(file) ?? []) {
      const cycle = walk(to, [...path, file])
      if (cycle !== null) return cycle
    }
    done.add(file)
    return null
  }
  for (const file of next.keys()) {
    const cycle = walk(file, [])
    if (cycle !== null) return cycle
  }
  return null
}

/** What is loaded with a file before anything of it runs: own files and libraries, without what is imported later. */
export function loadedWith(file: string, imports: readonly Import[]): Set<string> {
  const next = Map.groupBy(imports, ({ from }) => from)
  const loaded = new Set<string>()
  const walk = (from: string): void => {
    for (const { to, kind, typeOnly, later } of next.get(from) ?? []) {
      if (typeOnly || later || kind === 'node' || loaded.has(to)) continue
      loaded.add(to)
      if (kind === 'own') walk(to)
    }
  }
  walk(file)
  return loaded
}
