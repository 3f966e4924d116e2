import { describe, expect, test } from 'vitest'
import { fieldPathsOf, fieldsOfItem, namesOfPath } from '../../../../src/base/json/forms/item-fields.ts'
import { namesAreFound } from '../../../../src/base/json/forms/listed-names.ts'

describe('the fields of an item', () => {
  test.each<[string, object, string, object]>([
    ['its own', { id: 1, name: 'a' }, 'tags', { id: 1, name: 'a' }],
    ['those of JSON:API', { id: 7, attributes: { name: 'a' } }, 'tags', { id: 7, name: 'a' }],
    ['those under its kind', { Tag: { id: 7, name: 'a' } }, 'tags', { id: 7, name: 'a' }],
    ['those of a ticket', { ticket: { cve_id: 'CVE-1' } }, 'patches', { cve_id: 'CVE-1' }],
    ['two levels down', { data: { attributes: { name: 'a' } } }, 'images', { name: 'a' }],
    ['its own before others', { name: 'a', spec: { name: 'b' } }, 'images', { name: 'a' }],
    ['others before an empty one', { name: null, spec: { name: 'b' } }, 'images', { name: 'b' }],
  ])('are %s', (_, item, resource, fields) => {
    expect(fieldsOfItem(item as Record<string, unknown>, resource)).toMatchObject(fields)
  })

  test('are not those of another thing that it names', () => {
    const item = { tag: '3.12', image: { name: 'python' } }
    expect(fieldsOfItem(item, 'tags')).toBe(item)
  })

  test('do not change the prototype of the object that has them', () => {
    const item = JSON.parse('{"attributes":{"__proto__":{"name":"x"}}}') as Record<string, unknown>
    expect('name' in fieldsOfItem(item, 'tags')).toBe(false)
  })

  test('have the names that lead to them', () => {
    const item = { id: 1, attributes: { 'a.b': 1, data: { name: 'a' } } }
    const paths = fieldPathsOf(item, 'tags').map(namesOfPath)
    expect(paths).toContainEqual(['id'])
    expect(paths).toContainEqual(['attributes', 'a.b'])
    expect(paths).toContainEqual(['attributes', 'data', 'name'])
  })
})

test.each<[string, object, boolean]>([
  ['images', { id: 1, attributes: { repository: 'python' } }, true],
  ['images', { id: 1, title: 'python' }, false],
  ['packages', { package: { ecosystem: 'npm', name: 'a' } }, true],
  ['packages', { purl: 'pkg:npm/a' }, false],
])('names in a list of %s of %o are found: %s', (resource, item, found) => {
  expect(namesAreFound([{}, item as Record<string, unknown>], resource)).toBe(found)
})
