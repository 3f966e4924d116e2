import { expect, test } from 'vitest'
import { fillPath } from '../../../src/base/domain/path-templates.ts'

test.each([
  ['/v1/tags/{id}/sbom', { id: 'a/b c' }, '/v1/tags/a%2Fb%20c/sbom'],
  ['/v1/images/{repo}/tags', { repo: 'library/a b' }, '/v1/images/library/a%20b/tags'],
  ['/{a}{b}', { a: '{b}', b: '$&' }, '/%7Bb%7D%24%26'],
  ['{id}', { id: 'half a pair \ud800' }, 'half%20a%20pair%20%EF%BF%BD'],
  ['/{id}/{other}/{}', { id: '' }, '//{other}/{}'],
  ['/{id}/{cut', { id: 'x', cut: 'y' }, '/x/{cut'],
  ['/plain', { id: 'x' }, '/plain'],
])('the template %s is filled, one segment for each value but a repository', (template, values, path) => {
  expect(fillPath(template, values)).toBe(path)
})
