import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { SCRIPTS, plainTexts } from './plain.ts'

test.each(Object.entries(SCRIPTS))(
  'what the script %s of a measured process imports is beside it, or built',
  (_, modules) => {
    const texts = plainTexts(modules)
    const files = texts.map(({ file }) => `./${file}`)
    const imports = texts.flatMap(({ text }) => [...text.matchAll(/from '(\.[^']*)'/g)].map(([, from = '']) => from))
    const missing = imports.filter((from) => {
      const source = from.replace(/^\.\.\//, 'src/').replace(/\.js$/, '.ts')
      return !files.includes(from) && !existsSync(source)
    })
    expect(imports.length).toBeGreaterThan(0)
    expect(missing).toEqual([])
  },
)
