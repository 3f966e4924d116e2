import js from '@eslint/js'
import { defineConfig, globalIgnores } from 'eslint/config'
import tseslint from 'typescript-eslint'

/** Several values in one place that is read as one. */
const ONE_THING = [
  { selector: 'ObjectExpression > SpreadElement > ObjectExpression', message: 'write the members themselves' },
  {
    selector:
      'VariableDeclarator[id.type="ArrayPattern"][init.type="ArrayExpression"]:not([init.elements.0.type="SpreadElement"])',
    message: 'declare one value a line',
  },
]

export default defineConfig(
  globalIgnores(['dist', 'coverage', 'data', 'node_modules']),
  js.configs.recommended,
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: { allowDefaultProject: ['eslint.config.js'] } },
    },
    rules: {
      eqeqeq: 'error',
      'no-console': 'error',
      'no-nested-ternary': 'error',
      'no-restricted-syntax': ['error', ...ONE_THING],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          paths: ['http', 'node:http'].map((name) => ({
            name,
            allowTypeImports: true,
            message: 'use http of base/connections/http.ts, which says why',
          })),
        },
      ],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: { 'max-lines-per-function': 'off' },
  },
  {
    // Test files share processes, so a module that several of them import is evaluated once: its hooks run for one file only.
    files: ['test/**/*.ts'],
    ignores: ['test/**/*.test.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...ONE_THING,
        {
          selector: 'Program > ExpressionStatement > CallExpression[callee.name=/^(before|after)(Each|All)$/]',
          message: 'use onTestFinished where the resource is made',
        },
        {
          selector: 'CallExpression[callee.object.name="vi"][callee.property.name=/^wait/][arguments.length<2]',
          message: 'use expect.poll, which waits for as long as a busy machine needs: this one second',
        },
      ],
    },
  },
  {
    files: ['**/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
  },
  {
    files: ['src/features/pages/templates/script.js'], // it runs in a browser
    languageOptions: {
      globals: Object.fromEntries(
        [
          'document',
          'navigator',
          'location',
          'getSelection',
          'XMLHttpRequest',
          'URLSearchParams',
          'Option',
          'setTimeout',
          'clearTimeout',
          'setInterval',
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
)
