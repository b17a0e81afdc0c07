# forgetmap for `serve` and `gate`: docker run --rm -v "$PWD:/data" IMAGE gate before.jsonl after.jsonl
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE CHANGELOG.md constraints.txt ./
COPY src src
RUN pip wheel --no-cache-dir --constraint constraints.txt --wheel-dir /wheels ".[serve,remote]"

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels "forgetmap[serve,remote]" \
    && rm -rf /wheels \
    && useradd --create-home forgetmap
USER forgetmap
WORKDIR /data
EXPOSE 7860
ENTRYPOINT ["forgetmap"]
CMD ["serve", "/data", "--host", "0.0.0.0", "--port", "7860"]
