# The labelling page for all projects of a folder. The folder is a volume; nothing else is written.
#
#   docker build -t suffice .
#   docker run -p 8000:8000 -v "$PWD/projects:/projects" -e SUFFICE_TOKEN=choose-a-long-secret suffice
#
# People on other machines need an encrypted connection: see "Several people" in the documentation.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY src ./src
RUN python -m venv /opt/suffice \
    && /opt/suffice/bin/python -m pip install --no-cache-dir ".[web,excel,parquet,postgres]"

FROM python:3.13-slim
RUN useradd --create-home --uid 1000 suffice \
    && mkdir /projects \
    && chown suffice:suffice /projects
COPY --from=build /opt/suffice /opt/suffice
ENV PATH=/opt/suffice/bin:$PATH
USER 1000
WORKDIR /projects
VOLUME /projects
EXPOSE 8000
HEALTHCHECK --start-period=20s CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health', timeout=2)"]
ENTRYPOINT ["suffice", "serve", "--projects", "/projects", "--host", "0.0.0.0", "--port", "8000"]
