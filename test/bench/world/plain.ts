import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename } from 'node:path'
import { ROOT } from './processes.ts'

/** Modules of measured processes, each list with its entry first: paths in `test/bench`, without `.ts`. */
export const SCRIPTS = {
  daemon: ['world/daemon-child', 'world/built', 'world/peak', '../support/limits'],
  views: ['views/child', 'world/built', 'world/peak'],
} as const

/**
 * Writes the modules of a measured process as plain JavaScript into one folder, and returns the entry's path: what removes types
 * takes some megabytes of a process that loads TypeScript.
 */
export function plainScript(name: keyof typeof SCRIPTS): string {
  const folder = `${ROOT}dist/bench`
  mkdirSync(folder, { recursive: true })
  const paths = plainTexts(SCRIPTS[name]).map(({ file, text }) => {
    const path = `${folder}/${file}`
    writeFileSync(path, text)
    return path
  })
  return paths[0] ?? ''
}

/** The modules without types: they import each other from one folder, and the built program, above it, instead of `src`. */
export function plainTexts(modules: readonly string[]): { file: string; text: string }[] {
  return modules.map((module) => {
    const text = stripTypeScriptTypes(readFileSync(`${ROOT}test/bench/${module}.ts`, 'utf8'))
      .replaceAll(/(?<=from ')(?:\.\.\/)+src\/([^']*)\.ts(?=')/g, '../$1.js')
      .replaceAll(/(?<=from ')\.[^']*?(\w[\w-]*)\.ts(?=')/g, './$1.js')
    return { file: `${basename(module)}.js`, text }
  })
}
