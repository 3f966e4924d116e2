import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { settingsSchema } from '../../src/config/json-schema.ts'

const isValid = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(settingsSchema())
const validYaml = (text: string): boolean => isValid(parse(text))

test('the JSON Schema accepts the shipped settings and refuses unknown names, wrong types and limits', () => {
  for (const file of ['config/default.yaml', 'config/example.yaml'])
    expect([file, validYaml(readFileSync(file, 'utf8')), isValid.errors]).toEqual([file, true, null])
  expect(['', 'osv:', 'server: { cacheBytes: 1 GiB, publicUrl: null }'].map(validYaml)).toEqual([true, true, true])
  const wrong = [
    'sever: {}',
    'server: { prot: 1 }',
    'server: { port: high }',
    'server: { port: 65536 }',
    'server: { port: 1.5 }',
    'server: { cacheBytes: much }',
    'catalog: { scope: some }',
    'views: { query: 1 }',
    'server: { trustProxy: 10.0.0.7 }',
    'log: { level: null }',
  ]
  expect(wrong.filter(validYaml)).toEqual([])
})

test('the files of settings that are shipped name the schema for editors', () => {
  for (const file of ['config/default.yaml', 'config/example.yaml'])
    expect(readFileSync(file, 'utf8')).toMatch(/^# yaml-language-server: \$schema=\.\/schema\.json\n/)
})
