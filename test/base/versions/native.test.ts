import { readFileSync, readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { findEcosystem } from '../../../src/base/versions/ecosystems.ts'

/*
 * Pairs of versions with the relation that the ecosystem's own program gives. The head of each file names the program and how
 * it was asked; native/draw.ts drew the versions.
 */
const FOLDER = 'test/base/versions/native'
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.txt'))

function signOf(difference: number): string {
  if (difference < 0) return '<'
  return difference > 0 ? '>' : '='
}

test.each(FILES)("the order of versions agrees with the ecosystem's own program: %s", (file) => {
  const [head = '', ...lines] = readFileSync(`${FOLDER}/${file}`, 'utf8').trimEnd().split('\n')
  const ecosystem = /^# ([^:]+):/.exec(head)?.[1] ?? ''
  const order = findEcosystem(ecosystem)?.order
  if (order === null || order === undefined) throw new Error(`no order of ${ecosystem}`)
  const pairs = lines.filter((line) => !line.startsWith('#'))
  const found = pairs.map((pair) => {
    const [one = '', , other = ''] = pair.split(' ')
    const a = order.read(one)
    const b = order.read(other)
    if (a === null || b === null) return `${one} ? ${other}`
    return `${one} ${signOf(order.compare(a, b))} ${other}`
  })
  expect(found).toEqual(pairs)
  expect(pairs.length).toBeGreaterThanOrEqual(200)
})
