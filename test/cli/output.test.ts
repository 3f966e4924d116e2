import { expect, test } from 'vitest'
import { table } from '../../src/cli/output.ts'

test('what upstream says cannot move the cursor of a terminal', () => {
  const text = table(['what happened'], [['its keys are: \u001b]0;mine\u0007\u001b[2J\r\nnone']])
  expect(text).toBe('what happened\nits keys are:  ]0;mine [2J none')
})
