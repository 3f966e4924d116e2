import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { FEATURES } from '../../src/features.ts'
import { runTool } from '../support/tools.ts'

const TYPES = resolve('node_modules/typescript7/bin/tsc')

/** Copies the source without a feature: neither its folder is there, nor its row. */
function sourceWithout(name: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-without-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  cpSync('src', join(dir, 'src'), { recursive: true })
  for (const file of ['tsconfig.json', 'package.json']) cpSync(file, join(dir, file))
  symlinkSync(resolve('node_modules'), join(dir, 'node_modules'))
  rmSync(join(dir, 'src/features', name), { recursive: true })
  const table = join(dir, 'src/features.ts')
  const lines = readFileSync(table, 'utf8').split('\n')
  const kept = lines.filter((line) => line !== `  ${name},` && !line.includes(`'./features/${name}/`))
  expect(lines.length - kept.length).toBe(2)
  writeFileSync(table, kept.join('\n'))
  return dir
}

test.each(FEATURES.map(({ name }) => name))(
  'without the feature %s, types fail only in the features that need it',
  async (name) => {
    const ran = await runTool(process.execPath, [TYPES, '--pretty', 'false'], {
      cwd: sourceWithout(name),
      timeoutMs: 300_000,
    })
    const failing = [...ran.out.matchAll(/^src\/(\S+?)\(\d+,\d+\): error (TS\d+)/gm)].map(
      ([, path = '', code = '']) => {
        return { path, code }
      },
    )
    const missing = new Set(failing.filter(({ code }) => code === 'TS2307').map(({ path }) => path))
    const dependents = FEATURES.filter(({ needs = [] }) => needs.includes(name)).map((one) => `features/${one.name}/`)
    expect(failing.filter(({ path }) => !dependents.some((one) => path.startsWith(one)))).toEqual([])
    expect(missing.size > 0).toBe(dependents.length > 0)
  },
)
