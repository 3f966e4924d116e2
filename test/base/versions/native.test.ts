import { readFileSync, readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { canonicalVersion, findEcosystem, openVersion } from '../../../src/base/versions/ecosystems.ts'

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

/** Ecosystems whose versions have no form of their own: a text is one version. */
const AS_WRITTEN = ['Alpine', 'Debian', 'Red Hat', 'opam']

test.each(FILES)('versions have one form where the program calls them equal, and else another one: %s', (file) => {
  const [head = '', ...lines] = readFileSync(`${FOLDER}/${file}`, 'utf8').trimEnd().split('\n')
  const ecosystem = findEcosystem(/^# ([^:]+):/.exec(head)?.[1] ?? '')
  if (ecosystem === null) throw new Error(`no ecosystem of ${file}`)
  const formOf = (version: string): string => canonicalVersion(ecosystem, version)
  const wrong = lines.filter((line) => {
    if (line.startsWith('#')) return false
    const [one = '', relation = '', other = ''] = line.split(' ')
    const versions = [one, other]
    // A build counts here, and what names no single version is none.
    const isApart = versions.some((version) => version.includes('+') || openVersion(ecosystem, version) !== null)
    const isSame = formOf(one) === formOf(other)
    return isSame ? relation !== '=' : relation === '=' && !isApart
  })
  expect(AS_WRITTEN.includes(ecosystem.name) ? [] : wrong).toEqual([])
})
